"""Consumers see acks=all records only after fsync, when a power cut can no longer remove the records."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.in_process import Asker, InProcessBroker, Pending
from tests.faults.test_disk import KAFKA_STORAGE_ERROR, NONE, create_topic, fetch, produce
from tests.wire.record_batches import Batch, NewRecord


class Disk:
    """Blocks fdatasync of the topic's files until the test releases it. If `fails` is set, fdatasync raises EIO."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.fails = False
        self._fdatasync = os.fdatasync

    def fdatasync(self, fd: int) -> None:
        if "/t-0/" in os.readlink(f"/proc/self/fd/{fd}"):
            assert self.goes_on.wait(10)
            if self.fails:
                raise OSError(errno.EIO, "Input/output error")
        self._fdatasync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "fdatasync", disk.fdatasync)
    yield disk
    disk.goes_on.set()


def begin_produce(broker: InProcessBroker, value: bytes, acks: int) -> Pending:
    records = Batch(records=[NewRecord(value, timestamp=1_700_000_000_000)]).encode()
    data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    return broker.begin("produce", 9, {"acks": acks, "timeout": 30_000, "topic_data": data})


def begin_fetch(broker: InProcessBroker, offset: int, wait_ms: int) -> Pending:
    asked = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
    body = {
        "max_wait": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, "rack_id": "",
        "topics": [{"topic": "t", "partitions": asked}], "forgotten_topics_data": [],
    }  # fmt: skip
    return broker.begin("fetch", 11, body)


def fetched(pending: Pending) -> tuple[int, int, list[str]]:
    """Return (high watermark, last stable offset, values)."""
    (part,) = pending.answer()["responses"][0]["partitions"]
    values = [record["value"] for batch in part["records"] or [] for record in batch["records"]]
    return part["high_watermark"], part["last_stable_offset"], values


def listed(broker: Asker, timestamp: int) -> int:
    asked = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}]
    body = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": "t", "partitions": asked}]}
    (part,) = broker.ask("list_offsets", 7, body)["topics"][0]["partitions"]
    offset: int = part["offset"]
    return offset


def delete_all_records(broker: Asker) -> int:
    """Delete all records. Return the low watermark."""
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": -1}]}]
    (part,) = broker.ask("delete_records", 1, {"topics": topics, "timeout": 1_000})["topics"][0]["partitions"]
    low_watermark: int = part["low_watermark"]
    return low_watermark


def test_a_record_with_acks_all_is_visible_when_it_is_on_the_disk(tmp_path: Path, disk: Disk) -> None:
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        poll = begin_fetch(broker, 0, 8_000)
        produced = begin_produce(broker, b"v", acks=-1)
        assert fetched(begin_fetch(broker, 0, 0)) == (0, 0, [])
        assert [listed(broker, timestamp) for timestamp in (-1, 0, -3)] == [0, -1, -1]
        assert delete_all_records(broker) == 0
        assert not poll.is_done
        assert not produced.is_done
        disk.goes_on.set()
        broker.run_until(lambda: poll.is_done and produced.is_done, "the sync showed nothing")
        assert fetched(poll) == (1, 1, ["v"])
        assert [listed(broker, timestamp) for timestamp in (-1, 0, -3)] == [1, 0, 0]
        assert delete_all_records(broker) == 1


def test_a_record_whose_fsync_fails_is_never_visible(tmp_path: Path, disk: Disk) -> None:
    disk.fails = True
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        poll = begin_fetch(broker, 0, 300)
        produced = begin_produce(broker, b"v", acks=-1)
        disk.goes_on.set()
        broker.run_until(lambda: poll.is_done and produced.is_done, "nothing was answered")
        (answer,) = produced.answer()["responses"][0]["partition_responses"]
        assert answer["error_code"] == KAFKA_STORAGE_ERROR
        assert fetched(poll) == (0, 0, [])
        assert fetched(begin_fetch(broker, 0, 0)) == (0, 0, [])
        assert listed(broker, -1) == 0
        broker.crash()


def test_records_with_acks_1_wait_only_for_records_with_acks_all_before_them(tmp_path: Path, disk: Disk) -> None:
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        poll = begin_fetch(broker, 0, 8_000)
        assert begin_produce(broker, b"0", acks=1).is_done
        assert poll.is_done
        assert fetched(poll) == (1, 1, ["0"])
        durable = begin_produce(broker, b"1", acks=-1)
        assert begin_produce(broker, b"2", acks=1).is_done
        poll = begin_fetch(broker, 1, 8_000)
        assert fetched(begin_fetch(broker, 0, 0)) == (1, 1, ["0"])
        disk.goes_on.set()
        broker.run_until(lambda: poll.is_done and durable.is_done, "the sync showed nothing")
        assert fetched(poll) == (3, 3, ["1", "2"])


def test_without_fsync_records_with_acks_all_are_visible_at_once(tmp_path: Path, disk: Disk) -> None:
    with InProcessBroker(tmp_path, {"headgate.acks.all.fsync": "false"}) as broker:
        create_topic(broker, "t")
        assert begin_produce(broker, b"v", acks=-1).is_done
        assert fetched(begin_fetch(broker, 0, 0)) == (1, 1, ["v"])
        disk.goes_on.set()


def test_acks_0_with_flush_messages_is_flushed_and_visible(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, {"log.flush.interval.messages": "1"}) as broker:
        create_topic(broker, "t")
        begin_produce(broker, b"v", acks=0)
        broker.run_until(lambda: listed(broker, -1) == 1, "the record stays hidden")


def commit(broker: Asker, offset: int) -> None:
    part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": 0, "committed_metadata": "m"}
    body = {
        "group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None,
        "topics": [{"name": "t", "partitions": [part]}],
    }  # fmt: skip
    answer = broker.ask("offset_commit", 8, body)
    assert answer["topics"][0]["partitions"][0]["error_code"] == NONE


def committed(broker: Asker) -> int:
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = broker.ask("offset_fetch", 7, {"group_id": "g", "topics": topics, "require_stable": False})
    offset: int = answer["topics"][0]["partitions"][0]["committed_offset"]
    return offset


def test_a_group_skips_no_new_record_after_a_power_cut_took_those_it_had_committed(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        assert produce(broker, "t", b"stored") == (NONE, 0)
        (path,) = tmp_path.glob("t-0/*.log")
        stored = path.stat().st_size
        for number in range(9):
            produce(broker, "t", b"in the page cache %d" % number, acks=1)
        commit(broker, 10)
        broker.crash()
    os.truncate(path, stored)
    (tmp_path / "boot-id").write_text("the machine's last start")
    for _ in range(2):
        # The second start reads the files that the first start wrote.
        with InProcessBroker(tmp_path) as broker:
            assert committed(broker) == 1
            broker.crash()
    with InProcessBroker(tmp_path) as broker:
        for number in range(1, 12):
            assert produce(broker, "t", b"new %d" % number) == (NONE, number)
        assert fetch(broker, "t", committed(broker))[1][0] == (1, b"new 1")
