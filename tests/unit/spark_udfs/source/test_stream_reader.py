"""Positions of a stream: the start, the end of each micro-batch, and the ranges that the tasks read."""

import pickle
from typing import Any

import pytest
from aiokafka.structs import TopicPartition
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headgate.kafka_client.fetch import Isolation
from headgate.spark_udfs.source import stream_reader
from headgate.spark_udfs.source.admission import StreamReader
from headgate.spark_udfs.source.errors import DataLost
from headgate.spark_udfs.source.fetching import FetchOptions
from headgate.spark_udfs.source.offsets import INITIAL, Mark, from_json, to_json
from headgate.spark_udfs.source.options import ReadOptions, read_options
from headgate.spark_udfs.source.range_partition import RangePartition
from headgate.spark_udfs.source.reading import ReadSpec
from headgate.spark_udfs.source.stream_reader import LegacyStreamReader, StreamPositions
from tests.unit.spark_udfs.source.fake_cluster import FakeCluster

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster({A: (5, 20), B: (0, 10)}, ids={"orders": "x"})
    monkeypatch.setattr(stream_reader, "Cluster", lambda _connection: cluster)
    return cluster


def options(**more: Any) -> ReadOptions:
    return read_options({"bootstrap.servers": "a:1", "subscribe": "orders", **more}, is_streaming=True)


def spec(read: ReadOptions) -> ReadSpec:
    return ReadSpec(read.connection, FetchOptions(Isolation.READ_COMMITTED, 1, 1, True), ("value",), None)


def mark(a: int, b: int | None, ids: dict[str, str] | None = None) -> dict[str, Any]:
    offsets = {A: a} if b is None else {A: a, B: b}
    return to_json(Mark(offsets, {"orders": "x"} if ids is None else ids))


@pytest.mark.parametrize(("start", "expected"), [("earliest", mark(5, 0)), ("latest", mark(20, 10))])
def test_a_stream_begins_at_its_start_position(fake: FakeCluster, start: str, expected: dict[str, Any]) -> None:
    assert StreamPositions(options(startingOffsets=start)).initial() == expected
    without_ids = StreamPositions(options(startingOffsets=start, checkTopicIds="false"))
    assert "x" not in str(without_ids.initial())


def test_a_batch_ends_at_the_latest_offsets(fake: FakeCluster) -> None:
    positions = StreamPositions(options())
    assert positions.next(mark(7, 3), None) == mark(20, 10)
    assert positions.latest == {A: 20, B: 10}
    assert positions.next(mark(20, 10), None) == mark(20, 10)


def test_a_batch_has_a_limited_number_of_records(fake: FakeCluster) -> None:
    positions = StreamPositions(options())
    end = positions.next(mark(10, 0), 10)
    ends = from_json(end).offsets
    assert (ends[A] - 10) + ends[B] == 10
    assert positions.next(mark(10, 0), 1000) == mark(20, 10)
    # A new partition begins at its first offset.
    assert positions.next(mark(20, None), 4) == mark(20, 4)


@pytest.mark.parametrize(
    ("start", "stores"),
    [
        ("latest", True),
        ("earliest", False),
        ('{"orders": {"0": 20, "1": 10}}', False),
    ],
)
def test_an_empty_first_batch_stores_a_start_that_can_move(fake: FakeCluster, start: str, stores: bool) -> None:
    fake.logs = {A: (20, 20), B: (10, 10)}
    positions = StreamPositions(options(startingOffsets=start))
    initial = positions.initial()
    end = positions.next(initial, None)
    assert end == ({**initial, INITIAL: initial} if stores else initial)
    assert positions.next(initial, None) == initial


def test_the_first_batch_contains_its_start_and_reads_from_there_after_a_restart(fake: FakeCluster) -> None:
    positions = StreamPositions(options(startingOffsets="earliest"))
    initial = positions.initial()
    end = positions.next(initial, None)
    assert end == {**mark(20, 10), INITIAL: mark(5, 0)}
    # After a restart, Spark asks for a new initial offset, but the stored end refers to the first one.
    ranges = positions.ranges(mark(20, 10), end)
    assert [(one.wanted.at, one.wanted.start, one.wanted.end) for one in ranges] == [(A, 5, 20), (B, 0, 10)]
    assert positions.ranges(mark(20, 10), mark(20, 10)) == []


def test_an_older_broker_without_topic_ids_keeps_the_known_ids(fake: FakeCluster) -> None:
    fake.ids = {}
    assert StreamPositions(options()).next(mark(7, 3), None) == mark(20, 10)
    gone = {"orders": "x", "other": "y"}
    assert StreamPositions(options()).next(mark(7, 3, gone), None) == mark(20, 10)


def test_a_topic_that_was_created_again_is_lost_or_read_from_its_beginning(fake: FakeCluster) -> None:
    before = mark(7, 3, {"orders": "old"})
    with pytest.raises(DataLost, match="had the id old"):
        StreamPositions(options()).next(before, None)
    lenient = StreamPositions(options(failOnDataLoss="false"))
    assert lenient.next(before, None) == mark(20, 10)
    # The same offsets of another topic are new records.
    assert lenient.next(mark(20, 10, {"orders": "old"}), None) == mark(20, 10)
    # Offsets of the old topic do not count.
    limited = from_json(lenient.next(mark(19, 9, {"orders": "old"}), 5)).offsets
    assert (limited[A] - 5) + limited[B] == 5
    without_ids = StreamPositions(options(checkTopicIds="false"))
    assert without_ids.next(before, None) == mark(20, 10, {})


def test_a_partition_that_is_gone_is_lost(fake: FakeCluster) -> None:
    del fake.logs[B]
    with pytest.raises(DataLost, match="orders-1 was read before and is no longer in the cluster"):
        StreamPositions(options()).next(mark(7, 3), None)
    assert StreamPositions(options(failOnDataLoss="false")).next(mark(7, 3), None) == mark(20, None)
    assert StreamPositions(options(failOnDataLoss="false")).next(mark(7, 3), 100) == mark(20, None)


def test_available_now_ends_at_the_offsets_of_its_start(fake: FakeCluster) -> None:
    read = options()
    reader = StreamReader(read, spec(read))
    assert reader.reportLatestOffset() is None
    reader.prepareForTriggerAvailableNow()
    fake.logs = {A: (5, 30), B: (0, 30)}
    assert reader.latestOffset(mark(7, 3), ReadAllAvailable()) == mark(20, 10)
    assert reader.reportLatestOffset() == {"orders": {"0": 20, "1": 10}}


def test_spark_limits_the_size_of_a_batch(fake: FakeCluster) -> None:
    read = options(maxOffsetsPerTrigger="4")
    reader = StreamReader(read, spec(read))
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == 4
    assert reader.latestOffset(mark(20, 0), limit) == mark(20, 4)
    assert reader.latestOffset(mark(20, 0), ReadAllAvailable()) == mark(20, 10)
    assert isinstance(StreamReader(options(), spec(read)).getDefaultReadLimit(), ReadAllAvailable)


def test_a_reader_travels_to_the_executors_without_its_connections(fake: FakeCluster) -> None:
    read = options(startingOffsets="earliest")
    reader = StreamReader(read, spec(read))
    reader.stop()
    assert not fake.is_closed
    assert reader.initialOffset() == mark(5, 0)
    assert isinstance(reader.partitions(mark(5, 0), mark(20, 10))[0], RangePartition)
    arrived = pickle.loads(pickle.dumps(reader))
    arrived.stop()
    assert not fake.is_closed
    # An empty plan has a partition without a range.
    assert list(arrived.read(InputPartition(None))) == []
    reader.stop()
    assert fake.is_closed


def test_before_spark_4_2_the_reader_tracks_the_end_of_the_last_batch(fake: FakeCluster) -> None:
    read = options(startingOffsets="earliest", maxOffsetsPerTrigger="15")
    reader = LegacyStreamReader(read, spec(read))
    initial = reader.initialOffset()
    first = reader.latestOffset()
    ends = from_json(first).offsets
    assert (ends[A] - 5) + ends[B] == 15
    assert first[INITIAL] == initial
    reader.partitions(initial, first)
    assert from_json(reader.latestOffset()).offsets == {A: 20, B: 10}
    # After a restart, the limit applies from the second batch on.
    again = LegacyStreamReader(read, spec(read))
    assert again.latestOffset() == mark(20, 10)
    again.partitions(mark(5, 0), mark(6, 0))
    ends = from_json(again.latestOffset()).offsets
    assert (ends[A] - 6) + ends[B] == 15
