"""Cold reads: threads read records outside the page cache while the event loop serves other clients."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.log import index
from headgate.broker.log.files import LogFile
from headgate.broker.log.open_files import Descriptor
from headgate.broker.log.page_cache import ColdRead, ColdReads
from headgate.broker.log.segment import verified_bytes_max
from tests.unit.broker.log.logs import NOW_MS, append, fill, open_at
from tests.unit.broker.server.server_thread import SECONDS_MAX, eventually, serving
from tests.wire.entities import Plain
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

VALUE = os.urandom(150_000).hex()
BATCH = Batch([NewRecord(VALUE.encode(), timestamp=1)]).encode()
READ_BYTES_MAX = 64 << 20


class Gate:
    """Blocks the threads that read cold data until the test opens the gate."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Semaphore(0)
        self.opened = threading.Event()
        read = ColdReads.read

        def gated(pool: ColdReads, descriptor: Descriptor, position: int, length: int, scratch: bytearray) -> None:
            self.reached.release()
            assert self.opened.wait(SECONDS_MAX)
            read(pool, descriptor, position, length, scratch)

        monkeypatch.setattr(ColdReads, "read", gated)

    def wait(self) -> None:
        assert self.reached.acquire(timeout=SECONDS_MAX)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Make every page-cache probe of the topic `cold` report a miss."""
    probe, read = LogFile.cached_bytes, LogFile.read_cached

    def cold(file: LogFile) -> bool:
        return file.path.parent.name.startswith("cold-")

    monkeypatch.setattr(LogFile, "cached_bytes", lambda file, at, length: 0 if cold(file) else probe(file, at, length))
    monkeypatch.setattr(LogFile, "read_cached", lambda file, at, size: None if cold(file) else read(file, at, size))
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


def produce(client: RawConnection, topic: str, batch: bytes, count: int = 1, acks: int = 1) -> None:
    client.ask("create_topics", 7, {"topics": [{"name": topic, "num_partitions": 1, "replication_factor": 1}]})
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    for _ in range(count):
        answer = client.ask("produce", 9, {"acks": acks, "timeout": 1000, "topic_data": data})
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE"


def fetch_request(topic: str, offset: int = 0, max_bytes: int = READ_BYTES_MAX) -> Plain:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    topics = [{"topic": topic, "partitions": [partition]}]
    return {"max_wait": 0, "min_bytes": 1, "max_bytes": max_bytes, "session_epoch": -1, "topics": topics}


def values_of(answer: Plain) -> list[str]:
    (partition,) = answer["responses"][0]["partitions"]
    assert partition["error_code"] == "NONE"
    return [record["value"] for batch in partition["records"] for record in batch["records"]]


@pytest.mark.parametrize("value", [VALUE, "small"], ids=["sendfile", "copied"])
def test_other_connections_are_served_while_cold_data_is_read(tmp_path: Path, gate: Gate, value: str) -> None:
    batch = Batch([NewRecord(value.encode(), timestamp=1)]).encode()
    with serving(tmp_path) as server, RawConnection(server.address) as reader, RawConnection(server.address) as other:
        produce(other, "cold", batch, 5)
        produce(other, "hot", batch)
        reader.send("fetch", 11, fetch_request("cold"))
        reader.send("api_versions", 0, {})
        gate.wait()
        produce(other, "hot", batch, acks=-1)
        assert values_of(other.ask("fetch", 11, fetch_request("hot"))) == [value] * 2
        gate.opened.set()
        assert values_of(reader.receive()) == [value] * 5
        assert reader.receive()["error_code"] == "NONE"


@pytest.mark.parametrize("batches", [1, 2], ids=["records", "lookup"])
def test_a_client_that_disconnects_during_a_cold_read_leaves_nothing_behind(
    tmp_path: Path, gate: Gate, batches: int
) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as other:
        produce(other, "cold", BATCH, batches)
        for _ in range(3):
            with RawConnection(server.address) as reader:
                reader.send("fetch", 11, fetch_request("cold"))
                gate.wait()
        gate.opened.set()
        assert values_of(other.ask("fetch", 11, fetch_request("cold"))) == [VALUE] * batches
        connections = server.server._connections
        eventually(lambda: len(connections) == 1)


@pytest.mark.parametrize(("timestamp", "offset"), [(1_002, 2), (-3, 4)], ids=["by timestamp", "largest timestamp"])
def test_a_lookup_by_timestamp_in_cold_data_does_not_stop_other_clients(
    tmp_path: Path, gate: Gate, timestamp: int, offset: int
) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as reader, RawConnection(server.address) as other:
        for number in range(5):
            batch = Batch([NewRecord(b"value", timestamp=1_000 + number)]).encode()
            produce(other, "cold", batch)
        reader.send("list_offsets", 7, list_offsets_request("cold", timestamp))
        reader.send("api_versions", 0, {})
        gate.wait()
        produce(other, "hot", BATCH, acks=-1)
        gate.opened.set()
        (partition,) = reader.receive()["topics"][0]["partitions"]
        assert (partition["error_code"], partition["offset"]) == ("NONE", offset)
        assert reader.receive()["error_code"] == "NONE"


def list_offsets_request(topic: str, timestamp: int) -> Plain:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    return {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": [partition]}]}


def test_indexes_outside_the_page_cache_are_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_at(tmp_path / "log-0", internal_segment_bytes="2000", index_interval_bytes="150")
    fill(log, 100)
    log.close()
    log = open_at(tmp_path / "log-0")
    monkeypatch.setattr(index, "cached_bytes", lambda descriptor, position, length: 0)
    names = []
    for read in (
        lambda: log.read(1, 1000, at_least_one=True, wait=False),
        lambda: log.offset_for_timestamp(NOW_MS + 1, wait=False),
    ):
        with pytest.raises(ColdRead) as cold:
            read()
        descriptor = cold.value.file.descriptor()
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor.number}")).name)
    assert names == [f"{0:020d}.index"] * 2
    monkeypatch.undo()
    assert log.offset_for_timestamp(NOW_MS + 1, wait=False) == (1, NOW_MS + 1)
    log.close()


def test_a_topic_that_is_deleted_during_a_cold_read_is_answered_with_an_error(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as reader, RawConnection(server.address) as other:
        produce(other, "cold", BATCH, 2)
        reader.send("fetch", 11, fetch_request("cold"))
        gate.wait()
        other.ask("delete_topics", 4, {"topic_names": ["cold"], "timeout": 1000})
        gate.opened.set()
        (partition,) = reader.receive()["responses"][0]["partitions"]
        assert partition["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_data_that_was_dropped_from_the_page_cache_is_cached_again_before_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold_sends = []
    send = LogFile.send

    def checked(file: LogFile, socket_descriptor: int, position: int, length: int) -> int:
        if file.cached_bytes(position, length) < length:
            cold_sends.append((position, length))
        return send(file, socket_descriptor, position, length)

    monkeypatch.setattr(LogFile, "send", checked)
    with serving(tmp_path) as server, RawConnection(server.address) as client:
        produce(client, "large", BATCH, 12, acks=-1)
        topic = server.server.broker.topics.find("large")
        assert topic is not None
        file = topic.partitions[0].log.segments[0].file
        file.sync()
        os.posix_fadvise(file.descriptor().number, 0, 0, os.POSIX_FADV_DONTNEED)
        assert values_of(client.ask("fetch", 11, fetch_request("large"))) == [VALUE] * 12
    assert cold_sends == []


def test_one_read_verifies_a_limited_number_of_bytes_of_another_process(tmp_path: Path) -> None:
    log = open_at(tmp_path / "log-0")
    for _ in range(12):
        append(log, BATCH)
    log.close()
    reopened = open_at(tmp_path / "log-0")
    lengths, offset = [], 0
    while offset < 12:
        region = reopened.read(offset, READ_BYTES_MAX, at_least_one=True, wait=False)
        assert region is not None
        lengths.append(region.length)
        offset += region.length // len(BATCH)
    assert sum(lengths) == 12 * len(BATCH)
    assert max(lengths) <= verified_bytes_max + len(BATCH)
    again = reopened.read(0, READ_BYTES_MAX, at_least_one=True)
    assert again is not None
    assert again.length == 12 * len(BATCH)
    reopened.close()
