"""Fetches of an offset range: the pieces, the positions of requests, and what happens if records are gone."""

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.spark_udfs.source import fetching
from headgate.spark_udfs.source.errors import BrokerRefused, DataLost, TopicMissing, UnreadableBatch
from headgate.spark_udfs.source.fetching import FetchOptions, Piece, RangeFetcher, runs, whole_batches
from headgate.spark_udfs.source.loop import LoopThread
from headgate.spark_udfs.source.ranges import OffsetRange
from tests.unit.spark_udfs.source.fake_cluster import FakeCluster

A = TopicPartition("orders", 0)
OPTIONS = FetchOptions(Isolation.READ_UNCOMMITTED, bytes_max=1000, wait_ms=7, is_loss_fatal=True)
LENIENT = replace(OPTIONS, is_loss_fatal=False)
GZIP = 1


def batch(base: int, count: int, *, attributes: int = 0, records_bytes: int = 0) -> bytes:
    """The header of a batch, which is all that a fetch looks at, and space for records."""
    header = struct.pack(">iibIhiqqqhii", 49 + records_bytes, 0, 2, 0, attributes, count - 1, 0, 0, -1, -1, -1, count)
    return struct.pack(">q", base) + header + bytes(records_bytes)


def response(batches: bytes = b"", end: int = 100, stable: int | None = None, **more: Any) -> Fetched:
    return Fetched(batches, end, end if stable is None else stable, 0, **more)


@pytest.fixture(scope="module")
def thread() -> LoopThread:
    return LoopThread()


def read(thread: LoopThread, fake: FakeCluster, start: int, end: int, options: FetchOptions = OPTIONS) -> list[Piece]:
    fetcher = RangeFetcher(thread, fake.cluster, OffsetRange(A, start, end), options)
    try:
        return [replace(piece, batches=bytes(piece.batches)) for piece in fetcher]
    finally:
        fetcher.close()


def test_complete_batches_before_the_end_are_counted() -> None:
    first, second = batch(0, 3), batch(3, 2, records_bytes=10)
    assert whole_batches(b"", 10) == (0, -1)
    assert whole_batches(first, 10) == (61, 3)
    assert whole_batches(first + second, 10) == (132, 5)
    assert whole_batches(first + second, 4) == (132, 5)
    assert whole_batches(first + second, 3) == (61, 3)
    assert whole_batches(first + second[:-1], 10) == (61, 3)
    assert whole_batches(first + second[:60], 10) == (61, 3)
    assert whole_batches(first[:60], 10) == (0, -1)


def test_compaction_may_leave_only_batches_after_the_end() -> None:
    assert whole_batches(batch(50, 1), 50) == (0, 50)
    assert whole_batches(batch(0, 3) + batch(50, 1), 20) == (61, 20)
    assert whole_batches(batch(49, 1), 50) == (61, 50)


def test_a_header_with_a_wrong_length_ends_the_batches() -> None:
    short = struct.pack(">qi", 3, 48) + batch(3, 1)[12:]
    assert whole_batches(batch(0, 3) + short, 10) == (61, 3)
    negative = batch(7, 0)
    assert whole_batches(negative, 10) == (61, 8)


def test_uncompressed_batches_are_read_together() -> None:
    data = batch(0, 1, records_bytes=400_000) + batch(1, 1, records_bytes=400_000)
    assert [bytes(run) for run in runs(data)] == [data]
    assert list(runs(b"")) == []


def test_compressed_batches_are_divided_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (batch(base, 1, attributes=GZIP, records_bytes=39) for base in range(3))
    monkeypatch.setattr(fetching, "COMPRESSED_BYTES_MAX", 200)
    assert [len(run) for run in runs(one + two + three)] == [200, 100]
    monkeypatch.setattr(fetching, "COMPRESSED_BYTES_MAX", 199)
    assert [len(run) for run in runs(one + two + three)] == [100, 100, 100]
    monkeypatch.setattr(fetching, "COMPRESSED_BYTES_MAX", 50)
    assert [len(run) for run in runs(one + two)] == [100, 100]


def test_half_a_mebibyte_of_compressed_batches_is_decompressed_together() -> None:
    half = 256 * 1024 - 61
    fits = [batch(base, 1, attributes=GZIP, records_bytes=half) for base in range(2)]
    assert len(list(runs(b"".join(fits)))) == 1
    assert len(list(runs(fits[0] + batch(1, 1, attributes=GZIP, records_bytes=half + 1)))) == 2


def test_a_range_is_fetched_piece_by_piece(thread: LoopThread) -> None:
    first, second = batch(0, 3), batch(3, 4)
    fake = FakeCluster({A: (0, 100)}, responses=[response(first), response(second + batch(7, 1))])
    assert read(thread, fake, 1, 6) == [Piece(first, 1, ()), Piece(second, 3, ())]
    assert fake.fetched_from == [1, 3]
    assert fake.fetch_arguments[0]["bytes_max"] == 1000
    assert fake.fetch_arguments[0]["wait_ms"] == 7
    assert fake.fetch_arguments[0]["block"] is not fake.fetch_arguments[1]["block"]


def test_an_empty_range_sends_no_request(thread: LoopThread) -> None:
    fake = FakeCluster({A: (0, 100)})
    assert read(thread, fake, 5, 5) == []
    assert fake.fetched_from == []


def test_no_request_follows_the_last_batch(thread: LoopThread) -> None:
    fake = FakeCluster({A: (0, 3)}, responses=[response(batch(0, 3))])
    assert len(read(thread, fake, 0, 3)) == 1
    assert fake.fetched_from == [0]


def test_an_empty_response_is_requested_again(thread: LoopThread) -> None:
    fake = FakeCluster({A: (0, 3)}, responses=[response(end=1), response(batch(0, 3))])
    assert len(read(thread, fake, 0, 3)) == 1
    assert fake.fetched_from == [0, 0]


def test_a_log_that_ends_before_the_range_has_lost_records(thread: LoopThread) -> None:
    def fake(end: int, stable: int) -> FakeCluster:
        return FakeCluster({A: (0, 100)}, responses=[response(end=end, stable=stable), response(batch(4, 5))])

    with pytest.raises(DataLost, match=r"Offsets 4 to 8 of orders-0 existed when the query was planned\. Now the log"):
        read(thread, fake(4, 4), 4, 9)
    assert read(thread, fake(4, 4), 4, 9, LENIENT) == []
    assert len(read(thread, fake(5, 4), 4, 9)) == 1
    committed = replace(OPTIONS, isolation=Isolation.READ_COMMITTED)
    with pytest.raises(DataLost, match="Now the log ends at 5"):
        read(thread, fake(5, 4), 4, 9, committed)
    assert len(read(thread, fake(5, 5), 4, 9, committed)) == 1


def test_a_batch_that_cannot_be_divided_is_unreadable(thread: LoopThread) -> None:
    old = struct.pack(">qi", 4, 10) + bytes(49)
    fake = FakeCluster({A: (0, 100)}, responses=[response(old)])
    with pytest.raises(UnreadableBatch, match="The batch at offset 4 of orders-0 has an old message format"):
        read(thread, fake, 4, 9)
    # Less than a header is a truncated batch: the next fetch returns it.
    fake = FakeCluster({A: (0, 100)}, responses=[response(old[:-1]), response(batch(4, 5))])
    assert len(read(thread, fake, 4, 9)) == 1


def test_a_broker_that_returns_no_records_for_two_minutes_is_reported(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_after(seconds: list[float]) -> list[Piece]:
        clock = SimpleNamespace(monotonic=lambda: seconds.pop(0) if len(seconds) > 1 else seconds[0])
        # Replace only the clock of this module: the event loop uses the real one.
        monkeypatch.setattr(fetching, "time", clock)
        return read(thread, FakeCluster({A: (0, 9)}, responses=[response(), response(batch(4, 5))]), 4, 9)

    assert len(read_after([1000.0, 1120.0])) == 1
    with pytest.raises(BrokerRefused, match=r"no records of orders-0 from offset 4 on within 120 s, although"):
        read_after([1000.0, 1120.1])


@pytest.mark.parametrize(
    ("log", "end", "gone", "following"),
    [
        ((6, 20), 9, "4 to 5", 6),
        ((9, 20), 9, "4 to 8", 9),
        ((30, 40), 9, "4 to 8", 9),
        ((0, 4), 9, "4 to 8", 9),
        ((0, 2), 9, "4 to 8", 9),
    ],
)
def test_an_offset_out_of_range_is_lost(
    thread: LoopThread, log: tuple[int, int], end: int, gone: str, following: int
) -> None:
    def fake() -> FakeCluster:
        out = response(is_out_of_range=True)
        return FakeCluster({A: log}, responses=[out, response(batch(following, end - following))])

    with pytest.raises(DataLost, match=f"Offsets {gone} of orders-0 do not exist: the log starts at {log[0]}"):
        read(thread, fake(), 4, end)
    cluster = fake()
    assert [piece.first_offset for piece in read(thread, cluster, 4, end, LENIENT)] == [following] * (following < end)
    assert cluster.fetched_from == [4, following][: 1 + (following < end)]


@pytest.mark.parametrize("log", [(4, 20), (0, 5)])
def test_an_offset_that_exists_again_is_fetched_again(thread: LoopThread, log: tuple[int, int]) -> None:
    fake = FakeCluster({A: log}, responses=[response(is_out_of_range=True), response(batch(4, 5))])
    assert len(read(thread, fake, 4, 9)) == 1
    assert fake.fetched_from == [4, 4]


def test_a_deleted_topic_is_data_loss(thread: LoopThread) -> None:
    def fake() -> FakeCluster:
        return FakeCluster({A: (0, 9)}, responses=[TopicMissing("orders-0 does not exist.")])

    with pytest.raises(DataLost, match="Offsets 4 to 8 are lost: orders-0 does not exist"):
        read(thread, fake(), 4, 9)
    assert read(thread, fake(), 4, 9, LENIENT) == []
