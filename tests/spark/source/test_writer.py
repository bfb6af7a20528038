"""Frames to topics, without Spark around them: what is written, where it goes, and what is refused."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import partitioner
from pyarrow import lib as pa
from pyspark.sql import Row
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import ArrayType, BinaryType, DataType, StructType

from headgate.spark_udfs.source.data_source import HeadgateDataSource
from headgate.spark_udfs.source.errors import (
    BadOption,
    BrokerRefused,
    BrokerUnreachable,
    SourceError,
    TopicMissing,
    UnwritableRow,
)
from headgate.spark_udfs.source.options import write_options
from headgate.spark_udfs.source.row_writer import RowStreamWriter
from headgate.spark_udfs.source.writing import Written, write_batches
from tests.live.headgate import HeadgateBroker
from tests.live.ports import free_port
from tests.spark.source.topics import Topics, read

murmur2: Callable[[bytes], int] = partitioner.murmur2
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NOON = datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=UTC)
FOREVER = {"retention.ms": "-1"}


def written(topics: Topics, batch: pa.RecordBatch, **options: str) -> int:
    given = {name.replace("__", "."): text for name, text in options.items()}
    done = write_batches(write_options({"bootstrap.servers": topics.address, **given}), [batch])
    assert isinstance(done, Written)
    return done.records


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def sink(**options: str) -> HeadgateDataSource:
    given = {name.replace("__", "."): text for name, text in options.items()}
    return HeadgateDataSource(CaseInsensitiveDict({"bootstrap.servers": "127.0.0.1:9", **given}))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_come_back_as_they_were_written(topics: Topics, compression: str) -> None:
    topic = topics.create(2, config=FOREVER)
    rows = batch_of(
        topic=pa.array([topic] * 4),
        partition=pa.array([0, 0, 1, 1], pa.int32()),
        key=pa.array([b"k", None, b"", b"\xff"], pa.binary()),
        value=pa.array([b"v", b"\x00" * 500, None, b""], pa.binary()),
        headers=pa.array(
            [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, [], [{"key": "ü", "value": b""}]],
            HEADERS,
        ),
        timestamp=pa.array([NOON] * 4, pa.timestamp("us", "UTC")),
        something_else=pa.array([1, 2, 3, 4]),
    )
    assert written(topics, rows, kafka__compression__type=compression) == 4
    found = read(topics.source(topic, includeHeaders="true"))
    assert [row["key"] for row in found] == [b"k", None, b"", b"\xff"]
    assert [row["value"] for row in found] == [b"v", b"\x00" * 500, None, b""]
    assert [row["headers"] for row in found] == [
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        None,
        None,
        [{"key": "ü", "value": b""}],
    ]
    assert {row["timestamp"] for row in found} == {NOON}
    assert [row["partition"] for row in found] == [0, 0, 1, 1]


def test_a_key_goes_to_the_partition_that_java_would_choose(topics: Topics) -> None:
    topic = topics.create(5)
    keys = [f"customer-{n}" for n in range(200)]
    written(topics, batch_of(key=pa.array(keys), value=pa.array(keys)), topic=topic)
    for row in read(topics.source(topic)):
        assert row["partition"] == (murmur2(row["key"]) & 0x7FFFFFFF) % 5


def test_rows_of_one_key_keep_their_order_over_many_batches(embedded: Topics) -> None:
    topic = embedded.create(3)
    keys = [f"k{n % 7}" for n in range(5000)]
    values = [f"{n:05d}" for n in range(5000)]
    rows = batch_of(key=pa.array(keys), value=pa.array(values))
    assert written(embedded, rows, topic=topic, kafka__max__request__size="2000") == 5000
    found = read(embedded.source(topic))
    assert len(found) == 5000
    for key in set(keys):
        of_key = [row["value"] for row in found if row["key"] == key.encode()]
        assert of_key == sorted(of_key)


def test_rows_without_a_key_go_to_all_partitions_in_the_end(embedded: Topics) -> None:
    topic = embedded.create(3)
    rows = batch_of(value=pa.array(["x" * 100] * 3000))
    written(embedded, rows, topic=topic, kafka__max__request__size="1000")
    assert {row["partition"] for row in read(embedded.source(topic))} == {0, 1, 2}


def test_the_option_topic_goes_before_the_column(embedded: Topics) -> None:
    first, second = embedded.create(), embedded.create()
    rows = batch_of(topic=pa.array([first]), value=pa.array([b"v"]))
    written(embedded, rows, topic=second)
    written(embedded, rows)
    assert len(read(embedded.source(first))) == len(read(embedded.source(second))) == 1


def test_a_time_that_is_missing_is_now(embedded: Topics) -> None:
    topic = embedded.create(config=FOREVER)
    times = pa.array([None, NOON], pa.timestamp("us", "UTC"))
    before = datetime.now(UTC).replace(microsecond=0)
    written(embedded, batch_of(value=pa.array(["a", "b"]), timestamp=times), topic=topic)
    first, second = (row["timestamp"] for row in read(embedded.source(topic)))
    assert before <= first <= datetime.now(UTC)
    assert second == NOON


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"topic": pa.array([None], pa.string())}, "column topic is null"),
        ({"partition": pa.array([7], pa.int32())}, "partition 7"),
        ({"partition": pa.array([-1], pa.int32())}, "partition -1"),
        ({"headers": pa.array([[{"key": None, "value": b"x"}]], HEADERS)}, "header without a key"),
        ({"headers": pa.array([[None]], HEADERS)}, "header without a key"),
        ({"value": pa.array([b"x" * 5000])}, "a record of 50"),
    ],
)
def test_a_row_that_cannot_be_a_record_fails_the_task(
    embedded: Topics, columns: dict[str, pa.Array], problem: str
) -> None:
    topic = embedded.create()
    rows = batch_of(**{"topic": pa.array([topic]), "value": pa.array([b"v"]), **columns})
    with pytest.raises(UnwritableRow) as failed:
        written(embedded, rows, kafka__max__request__size="4000")
    assert problem in str(failed.value)


def test_records_that_the_broker_rejects_fail_the_task(topics: Topics) -> None:
    topic = topics.create(config={"max.message.bytes": "1000"})
    rows = batch_of(value=pa.array([b"fine", b"x" * 5000, b"fine"]))
    with pytest.raises(BrokerRefused, match="too large"):
        written(topics, rows, topic=topic)


def test_a_topic_that_brokers_do_not_make_is_missing(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path, {"auto.create.topics.enable": "false"})
    broker.start()
    topics = Topics(broker.address)
    with pytest.raises(TopicMissing, match="nowhere is not in the cluster"):
        written(topics, batch_of(value=pa.array([b"v"])), topic="nowhere", kafka__request__timeout__ms="500")
    broker.stop()


def test_a_broker_that_is_not_there_is_named() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnreachable, match=address):
        written(Topics(address), batch_of(value=pa.array([b"v"])), topic="t", kafka__delivery__timeout__ms="500")


def test_unreachable_advertised_addresses_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.spark_udfs.source.producing.WORKER_CONNECTION_SECONDS_MAX", 0.1)
    elsewhere = f"127.0.0.1:{free_port()}"
    broker = HeadgateBroker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{elsewhere}"})
    broker.start()
    with pytest.raises(
        BrokerUnreachable, match=f"{broker.address} respond, but their advertised addresses {elsewhere}"
    ):
        written(Topics(broker.address), batch_of(value=pa.array([b"v"])), topic="t")
    broker.stop()


def test_a_broker_that_restarts_when_a_task_begins_is_waited_for(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    topics = Topics(broker.address)
    topic = topics.create()
    broker.kill()
    back = threading.Timer(0.5, broker.start)
    back.start()
    assert written(topics, batch_of(value=pa.array([b"v"])), topic=topic) == 1
    back.join()
    broker.stop()


def test_a_broker_that_is_away_for_long_is_not_taken_for_a_missing_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    topics = Topics(broker.address)
    topic = topics.create()
    options = {"bootstrap.servers": broker.address, "topic": topic}
    back = threading.Timer(1.0, broker.start)

    def rows() -> Any:
        broker.kill()
        back.start()
        yield batch_of(value=pa.array([b"v"]))

    assert write_batches(write_options(options), rows()) == Written(1)
    back.join()
    broker.kill()
    gone = write_options({**options, "kafka.delivery.timeout.ms": "500"})
    with pytest.raises(BrokerUnreachable, match=broker.address):
        write_batches(gone, [batch_of(value=pa.array([b"v"]))])


def test_records_that_are_not_acknowledged_fail_the_task(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    topics = Topics(broker.address)
    topic = topics.create()
    options = {"bootstrap.servers": broker.address, "topic": topic, "kafka.delivery.timeout.ms": "1500"}

    def rows() -> Any:
        yield batch_of(value=pa.array([b"before"]))
        broker.kill()
        yield batch_of(value=pa.array([b"after"]))

    with pytest.raises(SourceError) as failed:
        write_batches(write_options(options), rows())
    assert isinstance(failed.value, BrokerUnreachable)
    assert "not acknowledged" in str(failed.value)


HEADER_ROWS = ArrayType(StructType().add("key", "string").add("value", "binary"))


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ({"key": "string"}, {"topic": "t"}, "no column value"),
        ({"value": "string"}, {}, "option topic"),
        ({"value": "integer"}, {"topic": "t"}, "must be binary or string, not int"),
        ({"value": StructType().add("a", "integer")}, {"topic": "t"}, "to_registry_avro"),
        ({"value": "string", "key": "integer"}, {"topic": "t"}, "column key must be"),
        ({"value": "string", "topic": "integer"}, {}, "column topic must be string"),
        ({"value": "string", "partition": "string"}, {"topic": "t"}, "column partition must be int"),
        ({"value": "string", "timestamp": "string"}, {"topic": "t"}, "column timestamp must be timestamp"),
        ({"value": "string", "headers": ArrayType(BinaryType())}, {"topic": "t"}, "column headers must be"),
    ],
)
def test_columns_that_do_not_fit_are_refused_on_the_driver(
    columns: dict[str, str | DataType], options: dict[str, str], problem: str
) -> None:
    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    with pytest.raises(BadOption) as failed:
        sink(**options).writer(schema, overwrite=False)
    assert problem in str(failed.value)


def test_a_time_too_far_ahead_is_explained(embedded: Topics) -> None:
    times = pa.array([datetime(2999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    with pytest.raises(BrokerRefused, match="up to an hour ahead"):
        written(embedded, batch_of(value=pa.array(["a"]), timestamp=times), topic=embedded.create())


def test_a_topic_is_never_overwritten() -> None:
    with pytest.raises(BadOption, match="mode append"):
        sink(topic="t").writer(StructType().add("value", "string"), overwrite=True)


def test_sinks_take_arrow_where_spark_has_it() -> None:
    schema = StructType().add("value", "string")
    assert isinstance(sink(topic="t").writer(schema, overwrite=False), DataSourceArrowWriter)
    assert isinstance(sink(topic="t").streamWriter(schema, overwrite=False), DataSourceStreamArrowWriter)


def test_rows_of_older_versions_are_written_alike(embedded: Topics) -> None:
    topic = embedded.create(config=FOREVER)
    schema = StructType().add("key", "string").add("value", "binary").add("timestamp", "timestamp")
    schema = schema.add("headers", HEADER_ROWS).add("ignored", "integer")
    writer = RowStreamWriter(write_options({"bootstrap.servers": embedded.address, "topic": topic}), schema)
    header = Row(key="h", value=bytearray(b"1"))
    rows = [
        Row(key="k", value=bytearray(b"v"), timestamp=NOON, headers=[header], ignored=1),
        Row(key=None, value=None, timestamp=None, headers=None, ignored=2),
    ]
    done = writer.write(iter(rows))
    assert isinstance(done, Written)
    assert done.records == 2
    first, second = read(embedded.source(topic, includeHeaders="true"))
    assert (first["key"], first["value"], first["timestamp"]) == (b"k", b"v", NOON)
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
