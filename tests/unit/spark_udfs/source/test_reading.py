"""One task of a read, and the readers and writers that the data source creates."""

from dataclasses import replace
from typing import Any

import pytest
from aiokafka.structs import TopicPartition
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.serdes.columnar import AbortedTransaction, BatchTooLarge
from headgate.spark_udfs.source import batch_reader, reading
from headgate.spark_udfs.source.admission import StreamReader
from headgate.spark_udfs.source.batch_reader import BatchReader
from headgate.spark_udfs.source.batch_writer import BatchWriter
from headgate.spark_udfs.source.data_source import HeadgateDataSource
from headgate.spark_udfs.source.errors import BadOption, DataLost, UnreadableBatch
from headgate.spark_udfs.source.fetching import FetchOptions
from headgate.spark_udfs.source.options import read_options
from headgate.spark_udfs.source.ranges import OffsetRange
from headgate.spark_udfs.source.reading import ReadSpec, read_range, shared_cluster
from headgate.spark_udfs.source.stream_writer import StreamWriter
from tests.unit.columnar.test_batches import marker, simple
from tests.unit.spark_udfs.source.fake_cluster import FakeCluster

A = TopicPartition("orders", 0)
OPTIONS = {"bootstrap.servers": "a:1", "subscribe": "orders"}
CONNECTION = read_options(OPTIONS, is_streaming=False).connection
STRICT = FetchOptions(Isolation.READ_COMMITTED, 1000, 7, is_loss_fatal=True)
SPEC = ReadSpec(CONNECTION, STRICT, ("offset", "value"), None)
MAGIC_AT = 16
LENIENT = replace(SPEC, fetch=replace(STRICT, is_loss_fatal=False))


def read(
    monkeypatch: pytest.MonkeyPatch, spec: ReadSpec, start: int, end: int, data: bytes, **more: Any
) -> list[tuple[int, bytes]]:
    fake = FakeCluster({A: (0, 100)}, responses=[Fetched(data, 100, 100, 0, **more)])
    monkeypatch.setattr(reading, "shared_cluster", lambda _connection: fake)
    batches = list(read_range(spec, OffsetRange(A, start, end)))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def test_a_task_reads_its_range_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple([b"a", b"b"], base=3) + simple([b"c", b"d", b"e"], base=5)
    assert read(monkeypatch, SPEC, 4, 7, data) == [(4, b"b"), (5, b"c"), (6, b"d")]
    assert read(monkeypatch, SPEC, 3, 8, data)[-1] == (7, b"e")


def test_records_of_aborted_transactions_are_skipped_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple([b"a"], producer=9, attributes=0x10) + simple([b"b"], base=1) + marker(2, 9, 0)
    aborted = (AbortedTransaction(9, 0),)
    assert read(monkeypatch, SPEC, 0, 3, data, aborted=aborted) == [(1, b"b")]


def test_a_damaged_batch_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple([b"a"]) + damaged(simple([b"b", b"c"], base=1)) + simple([b"d"], base=3)
    with pytest.raises(DataLost, match="The batch of offsets 1 to 2 of orders-0 is damaged"):
        read(monkeypatch, SPEC, 0, 4, data)
    assert read(monkeypatch, LENIENT, 0, 4, data) == [(0, b"a"), (3, b"d")]
    # Another task reads the damaged batch.
    assert read(monkeypatch, SPEC, 0, 1, data) == [(0, b"a")]
    with pytest.raises(DataLost):
        read(monkeypatch, SPEC, 0, 2, data)


def test_a_batch_of_an_old_message_format_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    old = bytearray(simple([b"b"], base=1))
    old[MAGIC_AT] = 1
    with pytest.raises(UnreadableBatch, match=r"The batch at offset 1 of orders-0 cannot be read.*Start behind it"):
        read(monkeypatch, LENIENT, 0, 4, simple([b"a"]) + bytes(old))


def test_a_fetch_that_expands_too_much_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*_arguments: Any, **_more: Any) -> None:
        raise BatchTooLarge("3 GB")

    monkeypatch.setattr(reading, "scan_batches", scan)
    with pytest.raises(UnreadableBatch, match=r"from offset 4 of orders-0 on .*3 GB. Lower kafka.max.partition.fetch"):
        read(monkeypatch, SPEC, 4, 7, simple([b"a"], base=4))


def test_tasks_of_a_process_share_their_connections() -> None:
    assert shared_cluster(CONNECTION) is shared_cluster(CONNECTION)
    other = read_options({**OPTIONS, "bootstrap.servers": "b:1"}, is_streaming=False).connection
    assert shared_cluster(other) is not shared_cluster(CONNECTION)


def source(**options: str) -> HeadgateDataSource:
    return HeadgateDataSource({**OPTIONS, **options})


def test_the_schema_has_the_selected_columns() -> None:
    assert HeadgateDataSource.name() == "headgate"
    assert source().schema().names[:3] == ["key", "value", "topic"]
    assert "headers" not in source().schema().names
    assert "headers" in source(includeHeaders="true").schema().names
    assert source(columns="offset,value").schema().names == ["offset", "value"]
    # A batch and a stream have different options. The schema does not depend on them.
    assert source(endingOffsets="latest", columns="key").schema().names == ["key"]
    assert source(columns="value").schema()["value"].metadata == {}
    addressed = source(columns="value", **{"registry.url": "http://127.0.0.1:9"}).schema()
    assert addressed["value"].metadata == {"headgate.registry.url": "http://127.0.0.1:9"}


def test_a_query_without_decoding_cannot_be_flat() -> None:
    with pytest.raises(BadOption, match="'flat'"):
        source(flat="true").schema()
    assert source(flat="true", columns="key").schema().names == ["key"]


def test_readers_check_the_schema_and_the_options_of_their_kind() -> None:
    schema = StructType([StructField("value", BinaryType())])
    assert isinstance(source().reader(schema), BatchReader)
    assert isinstance(source().streamReader(schema), StreamReader)
    assert isinstance(source(endingOffsets="latest").reader(schema), BatchReader)
    with pytest.raises(BadOption, match="endingOffsets"):
        source(endingOffsets="latest").streamReader(schema)
    with pytest.raises(BadOption, match="column value is binary"):
        source().reader(StructType([StructField("value", StringType())]))


def test_writers_only_append() -> None:
    schema = StructType([StructField("value", BinaryType())])
    sink = HeadgateDataSource({"bootstrap.servers": "a:1", "topic": "orders"})
    assert isinstance(sink.writer(schema, overwrite=False), BatchWriter)
    assert isinstance(sink.streamWriter(schema, overwrite=False), StreamWriter)
    for writer in (sink.writer, sink.streamWriter):
        with pytest.raises(BadOption, match="write with mode append"):
            writer(schema, True)
        with pytest.raises(BadOption, match="no column value"):
            writer(StructType([]), False)


def test_a_batch_query_closes_its_connections_after_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCluster({A: (3, 9)})
    monkeypatch.setattr(batch_reader, "Cluster", lambda _connection: fake)
    reader = source().reader(StructType([StructField("value", BinaryType())]))
    (partition,) = reader.partitions()
    assert partition.wanted == OffsetRange(A, 3, 9)  # type: ignore[attr-defined]
    assert fake.is_closed
    assert list(reader.read(InputPartition(None))) == []
