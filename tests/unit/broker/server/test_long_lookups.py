"""Lookups that scan a whole segment or decompress a large batch run in threads."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.broker.log import time_search
from headgate.broker.log.log_deletion import confirm_times
from headgate.broker.log.segment import Segment
from headgate.wire.record_batch import BatchHeader
from tests.unit.broker.log.logs import NOW_MS, fill, open_at, values_from
from tests.unit.broker.server.server_thread import SECONDS_MAX, serving
from tests.wire.entities import Plain
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

RECORDS = 3_000


class Gate:
    """Blocks the thread that calls `passed` until the test opens the gate."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def passed(self) -> None:
        self.reached.set()
        assert self.opened.wait(SECONDS_MAX)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def gated_scan(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Block every scan that rebuilds indexes."""
    scan = Segment.scan_indexes

    def gated(segment: Segment) -> None:
        gate.passed()
        scan(segment)

    monkeypatch.setattr(Segment, "scan_indexes", gated)
    return gate


def create(client: RawConnection, topic: str, **configs: str) -> None:
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    wanted = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    client.ask("create_topics", 7, {"topics": [wanted]})


def produce(client: RawConnection, topic: str, batch: bytes) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.ask("produce", 9, {"acks": -1, "timeout": 1000, "topic_data": data})
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE"


def ask_time(client: RawConnection, topic: str, timestamp: int) -> None:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    body = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": [partition]}]}
    client.send("list_offsets", 7, body)


def offset_of(answer: Plain) -> tuple[str, int]:
    (partition,) = answer["topics"][0]["partitions"]
    return partition["error_code"], partition["offset"]


def ask_records(client: RawConnection, topic: str, offset: int) -> None:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}
    topics = [{"topic": topic, "partitions": [partition]}]
    client.send("fetch", 11, {"max_wait": 0, "min_bytes": 1, "max_bytes": 1, "session_epoch": -1, "topics": topics})


def first_record(answer: Plain) -> tuple[str, int]:
    (partition,) = answer["responses"][0]["partitions"]
    return partition["error_code"], partition["records"][0]["records"][0]["offset"] if partition["records"] else -1


def with_lost_indexes(folder: Path) -> None:
    """Store the topic `old` with several segments, and remove the indexes of all sealed segments."""
    with serving(folder) as server, RawConnection(server.address) as client:
        create(client, "old", internal_segment_bytes="300")
        create(client, "other")
        for number in range(10):
            produce(client, "old", Batch([NewRecord(bytes(100), timestamp=NOW_MS + number)]).encode())
    paths = sorted((folder / "old-0").glob("*index"))
    assert len(paths) > 4
    for path in paths:
        path.unlink()


Question = tuple[Callable[[RawConnection], None], Callable[[Plain], tuple[str, int]]]
QUESTIONS: dict[str, Question] = {
    "fetch": (lambda client: ask_records(client, "old", 3), first_record),
    "list_offsets": (lambda client: ask_time(client, "old", NOW_MS + 3), offset_of),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_other_connections_are_served_while_indexes_are_rebuilt(
    tmp_path: Path, gated_scan: Gate, question: str
) -> None:
    ask, answer_of = QUESTIONS[question]
    with_lost_indexes(tmp_path)
    with serving(tmp_path) as server, RawConnection(server.address) as other:
        readers = [RawConnection(server.address) for _ in range(2)]
        for reader in readers:
            ask(reader)
        assert gated_scan.reached.wait(SECONDS_MAX)
        produce(other, "other", Batch().encode())
        gated_scan.opened.set()
        for reader in readers:
            assert answer_of(reader.receive()) == ("NONE", 3)
            reader.close()
    assert list((tmp_path / "old-0").glob("*.timeindex"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_rebuild_that_fails_is_answered_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    ask, answer_of = QUESTIONS[question]
    with_lost_indexes(tmp_path)

    def fail(segment: Segment) -> None:
        raise OSError(5, "Input/output error")

    with serving(tmp_path) as server, RawConnection(server.address) as client:
        with monkeypatch.context() as context:
            context.setattr(Segment, "scan_indexes", fail)
            ask(client)
            assert answer_of(client.receive())[0] == "KAFKA_STORAGE_ERROR"
        ask(client)
        assert answer_of(client.receive()) == ("NONE", 3)


def test_retention_reads_the_times_of_a_segment_without_indexes_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 60)
    log.close()
    for path in (*tmp_path.glob("*index"), tmp_path / "segments"):
        path.unlink()
    log = open_at(tmp_path, retention_ms="1000")

    def fail(segment: Segment) -> None:
        raise AssertionError("a scan without yielding")

    monkeypatch.setattr(Segment, "scan_indexes", fail)
    now_ms = NOW_MS + 10_000
    steps = len(list(confirm_times(log, now_ms)))
    assert steps > 3
    first = log.segments[1].base_offset
    assert log.apply_retention(now_ms, segments_max=1) == 1
    assert log.log_start_offset == first
    monkeypatch.undo()
    assert [offset for offset, _ in values_from(log, first)] == list(range(first, 180))


@pytest.fixture
def gated_search(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Block every search of a large batch."""
    search = time_search.first_at

    def gated(batch: bytes, header: BatchHeader, timestamp: int, offset_min: int) -> tuple[int, int] | None:
        gate.passed()
        return search(batch, header, timestamp, offset_min)

    monkeypatch.setattr(time_search, "first_at", gated)
    return gate


def large_batch(first_ms: int) -> bytes:
    rows = [NewRecord(bytes(1_000), timestamp=first_ms + number) for number in range(RECORDS)]
    return Batch(rows, codec="gzip", max_timestamp=first_ms + RECORDS - 1).encode()


@pytest.mark.parametrize(("timestamp", "offset"), [(NOW_MS + 1_234, 1_234), (-3, 2 * RECORDS - 1)])
def test_other_connections_are_served_while_a_large_batch_is_searched(
    tmp_path: Path, gated_search: Gate, timestamp: int, offset: int
) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as reader, RawConnection(server.address) as other:
        create(other, "t")
        for number in range(2):
            produce(other, "t", large_batch(NOW_MS + number * RECORDS))
        ask_time(reader, "t", timestamp)
        assert gated_search.reached.wait(SECONDS_MAX)
        produce(other, "t", Batch([NewRecord(b"small", timestamp=1)]).encode())
        gated_search.opened.set()
        assert offset_of(reader.receive()) == ("NONE", offset)


def test_records_that_are_deleted_during_a_search_are_not_found(tmp_path: Path, gated_search: Gate) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as reader, RawConnection(server.address) as other:
        create(other, "t")
        produce(other, "t", large_batch(NOW_MS))
        ask_time(reader, "t", NOW_MS + 5)
        assert gated_search.reached.wait(SECONDS_MAX)
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 100}]}]
        other.ask("delete_records", 1, {"topics": topics, "timeout": 1_000})
        gated_search.opened.set()
        assert offset_of(reader.receive()) == ("NONE", 100)


def test_a_small_batch_is_searched_without_a_thread(tmp_path: Path, gated_search: Gate) -> None:
    with serving(tmp_path) as server, RawConnection(server.address) as client:
        create(client, "t")
        rows = [NewRecord(bytes(100), timestamp=NOW_MS + number) for number in range(100)]
        produce(client, "t", Batch(rows, codec="gzip", max_timestamp=NOW_MS + 99).encode())
        ask_time(client, "t", NOW_MS + 42)
        assert offset_of(client.receive()) == ("NONE", 42)
        assert not gated_search.reached.is_set()
