"""Disk faults: a full disk, I/O errors, bit rot and lost files.

The affected partition returns an error. No acknowledged record is lost. Other partitions stay available.
"""

import errno
import os
import shutil
from pathlib import Path

import pytest

from headgate.broker.log.directory import DataDirectory
from headgate.broker.runtime.errors import DataDirectoryLocked
from tests.faults.in_process import Asker, InProcessBroker
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

NONE = "NONE"
KAFKA_STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
CORRUPT_MESSAGE = "CORRUPT_MESSAGE"


def produce(connection: Asker, topic: str, value: bytes, acks: int = -1) -> tuple[str, int]:
    """Produce one record. Return (error code, base offset)."""
    records = Batch(records=[NewRecord(value)]).encode()
    answer = connection.ask(
        "produce",
        9,
        {
            "transactional_id": None,
            "acks": acks,
            "timeout": 30_000,
            "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
        },
    )
    (partition,) = answer["responses"][0]["partition_responses"]
    return partition["error_code"], partition["base_offset"]


def fetch(connection: Asker, topic: str, offset: int) -> tuple[str, list[tuple[int, bytes]]]:
    """Return (error code, records starting at the offset)."""
    answer = connection.ask(
        "fetch",
        12,
        {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 1,
            "max_bytes": 50_000_000,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": topic,
                    "partitions": [
                        {
                            "partition": 0,
                            "current_leader_epoch": -1,
                            "fetch_offset": offset,
                            "last_fetched_epoch": -1,
                            "log_start_offset": -1,
                            "partition_max_bytes": 50_000_000,
                        }
                    ],
                }
            ],
            "forgotten_topics_data": [],
            "rack_id": "",
        },
    )
    (partition,) = answer["responses"][0]["partitions"]
    rows = [
        (record["offset"], record["value"].encode("latin-1"))
        for batch in partition["records"] or []
        for record in batch["records"]
        if record["offset"] >= offset
    ]
    return partition["error_code"], rows


def create_topic(connection: Asker, name: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    answer = connection.ask("create_topics", 5, {"topics": [topic], "timeout": 10_000, "validate_only": False})
    assert answer["topics"][0]["error_code"] == NONE


def test_a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    # One Fetch response must hold all stored records.
    broker = HeadgateBroker(small_disk, {"fetch.max.bytes": "50000000"})
    broker.start()
    with RawConnection(broker.address) as connection:
        create_topic(connection, "full")
        kept = []
        ballast.write_bytes(bytes(1024 * 1024))
        for number in range(200):
            value = str(number).encode() + bytes(100_000)
            error, offset = produce(connection, "full", value)
            if error != NONE:
                break
            kept.append((offset, value))
        assert error == KAFKA_STORAGE_ERROR
        assert fetch(connection, "full", 0) == (NONE, kept)
        ballast.unlink()
        error, offset = produce(connection, "full", b"room again")
        assert (error, offset) == (NONE, len(kept))
    assert b"No space left on device" in (broker.folder / "broker.log").read_bytes()
    broker.kill()
    broker.start()
    with RawConnection(broker.address) as connection:
        assert fetch(connection, "full", 0) == (NONE, [*kept, (len(kept), b"room again")])
    broker.stop()


def test_a_failing_fsync_stops_its_partition_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fdatasync

    def fails_for_one(fd: int) -> None:
        if "sick-0" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    with InProcessBroker(tmp_path) as broker:
        for name in ("sick", "well"):
            create_topic(broker, name)
            assert produce(broker, name, b"before") == (NONE, 0)
        monkeypatch.setattr(os, "fdatasync", fails_for_one)
        assert produce(broker, "sick", b"lost?")[0] == KAFKA_STORAGE_ERROR
        assert produce(broker, "well", b"fine") == (NONE, 1)
        monkeypatch.undo()
        # The broker does not retry fsync: the kernel may have dropped the dirty pages. Only a restart re-reads the log.
        assert produce(broker, "sick", b"later")[0] == KAFKA_STORAGE_ERROR
        assert produce(broker, "sick", b"later", acks=1)[0] == KAFKA_STORAGE_ERROR
        assert fetch(broker, "sick", 0)[1][0] == (0, b"before")
    with InProcessBroker(tmp_path) as broker:
        assert fetch(broker, "sick", 0)[1][0] == (0, b"before")
        assert produce(broker, "sick", b"well again")[0] == NONE


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_failing_write_leaves_no_half_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    real = os.pwritev

    def half(fd: int, buffers: list[bytes], position: int) -> int:
        os.pwrite(fd, b"".join(buffers)[:40], position)
        raise OSError(number, os.strerror(number))

    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        assert produce(broker, "t", b"one") == (NONE, 0)
        monkeypatch.setattr(os, "pwritev", half)
        assert produce(broker, "t", b"two")[0] == KAFKA_STORAGE_ERROR
        monkeypatch.setattr(os, "pwritev", real)
        assert fetch(broker, "t", 0) == (NONE, [(0, b"one")])
        error, offset = produce(broker, "t", b"three")
        assert (error, offset) == ((NONE, 1) if number == errno.ENOSPC else (KAFKA_STORAGE_ERROR, -1))
    with InProcessBroker(tmp_path) as broker:
        assert fetch(broker, "t", 0)[1][0] == (0, b"one")


def test_a_flipped_bit_returns_corrupt_message_and_affects_no_other_batch(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    with RawConnection(broker.address) as connection:
        create_topic(connection, "rot")
        for number in range(30):
            assert produce(connection, "rot", b"value-%d" % number)[0] == NONE
    for stop in (broker.kill, broker.stop):
        stop()
        (path,) = broker.data.glob("rot-0/*.log")
        data = bytearray(path.read_bytes())
        data[data.index(b"value-15")] ^= 0x10
        path.write_bytes(data)
        broker.start()
        with RawConnection(broker.address) as connection:
            assert fetch(connection, "rot", 0)[1] == [(n, b"value-%d" % n) for n in range(15)]
            assert fetch(connection, "rot", 15) == (CORRUPT_MESSAGE, [])
            assert fetch(connection, "rot", 16)[1] == [(n, b"value-%d" % n) for n in range(16, 30)]
        data[data.index(b"Value-15" if b"Value-15" in data else b"falue-15")] ^= 0x10
        path.write_bytes(data)
    broker.stop()


def test_one_process_per_data_directory(tmp_path: Path) -> None:
    first = HeadgateBroker(tmp_path)
    first.start()
    second = HeadgateBroker(tmp_path)
    with pytest.raises(Exception, match="in use by another process"):
        second.start()
    with pytest.raises(DataDirectoryLocked):
        DataDirectory(first.data).open()
    first.kill()
    second.start()
    second.stop()


@pytest.mark.parametrize(
    "victim", ["meta.json", "recovery-points", "boot-id", "clean-shutdown", "__cluster_metadata-0"]
)
@pytest.mark.parametrize("harm", ["deleted", "garbage"])
def test_losing_a_file_of_the_brokers_own_loses_no_record(tmp_path: Path, victim: str, harm: str) -> None:
    with InProcessBroker(tmp_path) as broker:
        for name in ("a", "b.c", "b_d"):
            create_topic(broker, name)
            assert produce(broker, name, name.encode()) == (NONE, 0)
    path = tmp_path / victim
    if harm == "deleted":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        for file in path.iterdir() if path.is_dir() else [path]:
            file.write_bytes(b"\x93garbage\xff" * 40)
    with InProcessBroker(tmp_path) as broker:
        for name in ("a", "b.c", "b_d"):
            assert fetch(broker, name, 0) == (NONE, [(0, name.encode())])
            assert produce(broker, name, b"more") == (NONE, 1)


def test_a_deleted_topic_stays_deleted_although_the_broker_dies_before_its_files_are_gone(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "gone")
        assert produce(broker, "gone", b"old") == (NONE, 0)
        shutil.copytree(tmp_path / "gone-0", tmp_path.parent / "saved")
        answer = broker.ask("delete_topics", 4, {"topic_names": ["gone"], "timeout": 10_000})
        assert answer["responses"][0]["error_code"] == NONE
        shutil.copytree(tmp_path.parent / "saved", tmp_path / "gone-0")
        broker.crash()
    with InProcessBroker(tmp_path) as broker:
        assert fetch(broker, "gone", 0)[0] == "UNKNOWN_TOPIC_OR_PARTITION"
        create_topic(broker, "gone")
        assert fetch(broker, "gone", 0) == (NONE, [])
