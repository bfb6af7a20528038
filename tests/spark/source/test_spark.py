"""The data source in Spark itself: frames, streams with checkpoints, sinks, SQL, and what a user reads on failure."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark_udfs import decode_frame, decode_topic
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.ports import free_port
from tests.spark.functions.payloads import CUSTOMERS, customers, register
from tests.spark.source.topics import Message, Topics, numbered, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POISON = (None, b"", b"junk", b"\x00\x00\x99\x99\x99body")


@pytest.fixture(scope="module")
def customer_topic(embedded: Topics, registry: HeadgateRegistry) -> str:
    """A topic of three writer versions with poison among them; its subject is the topic's name and -value."""
    topic = embedded.create(2)
    ids = register(registry, f"{topic}-value", *CUSTOMERS)
    good = customers(ids)
    poison = (*POISON, good[2][:5])
    payloads: list[bytes | None] = [good[n % 3] if n % 4 else poison[n // 4 % len(poison)] for n in range(400)]
    payloads += [good[0][:-2], good[1] + b"x"]
    embedded.produce(topic, [Message(f"k{n}", value, partition=n % 2) for n, value in enumerate(payloads)])
    return topic


def load(spark: "SparkSession", topics: Topics, topic: str, **options: str) -> "DataFrame":
    reader = spark.read.format("headgate").option("bootstrap.servers", topics.address).option("subscribe", topic)
    return reader.options(**{name.replace("__", "."): text for name, text in options.items()}).load()


def stream(spark: "SparkSession", topics: Topics, topic: str, **options: str) -> "DataFrame":
    reader = spark.readStream.format("headgate").option("bootstrap.servers", topics.address)
    given = {"subscribe": topic, "startingOffsets": "earliest", **options}
    return reader.options(**{name.replace("__", "."): text for name, text in given.items()}).load()


def rows_of(frame: "DataFrame") -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row["partition"], row["offset"]))


def test_raw_rows_have_the_columns_of_sparks_own_source(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry
) -> None:
    topic = embedded.create(2)
    embedded.produce(topic, [*numbered(30), *numbered(20, 1), Message(None, None, [("h", b"1")])])
    frame = load(spark, embedded, topic, includeHeaders="true", registry__url=registry.url)
    assert [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema] == [
        "key binary",
        "value binary",
        "topic string",
        "partition int",
        "offset bigint",
        "timestamp timestamp",
        "timestampType int",
        "headers array<struct<key:string,value:binary>>",
    ]
    assert frame.schema["value"].metadata == {"headgate.registry.url": registry.url}
    rows = rows_of(frame)
    assert [bytes(row.value) for row in rows if row.value is not None] == [
        f"v{n}".encode() for count in (30, 20) for n in range(count)
    ]
    assert rows[30].key is None
    assert rows[30].headers[0].value == b"1"
    assert {row.headers for row in rows[:30]} == {None}


def test_values_decoded_in_the_source_are_those_decoded_from_raw_rows(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry, customer_topic: str
) -> None:
    subject = f"{customer_topic}-value"
    decoded = load(spark, embedded, customer_topic, subject=subject, registry__url=registry.url)
    raw = decode_frame(load(spark, embedded, customer_topic, registry__url=registry.url), subject=subject)
    names = ["partition", "offset", "key", "value", "reason", "schema_id", "raw"]
    ours, theirs = rows_of(decoded.select(*names)), rows_of(raw.select(*names))
    assert ours == theirs
    assert len(ours) == 402
    counts = {row.reason: row["count"] for row in decoded.groupBy("reason").count().collect()}
    assert counts == {
        None: 300,
        "NULL": 20,
        "TOO_SHORT": 40,
        "TRUNCATED": 21,
        "UNKNOWN_SCHEMA": 20,
        "TRAILING_BYTES": 1,
    }


def test_a_decoded_frame_is_parted_into_good_rows_and_dead_letters(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry, customer_topic: str
) -> None:
    decoded = load(spark, embedded, customer_topic, subject=f"{customer_topic}-value", registry__url=registry.url)
    good, poison = decode_topic(decoded)
    assert (good.count(), poison.count()) == (300, 102)


def test_fields_columns_and_modes_are_chosen_by_options(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry, customer_topic: str
) -> None:
    given = {"subject": f"{customer_topic}-value", "registry__url": registry.url}
    narrow = load(spark, embedded, customer_topic, fields="id", columns="offset,value", **given)
    assert narrow.schema.simpleString() == "struct<offset:bigint,value:struct<id:bigint>>"
    assert narrow.where("value is not null").count() == 300
    nulls = load(spark, embedded, customer_topic, on_poison="NULL", **given)
    assert "raw" not in nulls.columns
    assert nulls.where("reason is null").count() == 300
    first = load(spark, embedded, customer_topic, version="1", **given)
    assert "fax" in first.schema["value"].dataType.names  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="PoisonError"):
        load(spark, embedded, customer_topic, on_poison="FAIL", **given).collect()


def test_a_users_schema_may_leave_columns_out_and_change_nothing(spark: "SparkSession", embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(3))
    reader = spark.read.format("headgate").option("bootstrap.servers", embedded.address).option("subscribe", topic)
    assert [row.offset for row in reader.schema("offset bigint, value binary").load().collect()] == [0, 1, 2]
    with pytest.raises(Exception, match="column value is binary"):
        reader.schema("value string").load().collect()


def test_a_topic_is_a_table_in_sql(spark: "SparkSession", embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(5))
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW headgate_sql USING headgate "
        f"OPTIONS (`bootstrap.servers` '{embedded.address}', subscribe '{topic}')"
    )
    (row,) = spark.sql("SELECT count(*) AS n, max(offset) AS last FROM headgate_sql").collect()
    assert (row.n, row.last) == (5, 4)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"startingOfsets": "earliest"}, "did you mean startingOffsets"),
        ({"subject": "no-such-subject"}, "no-such-subject is not in the registry"),
        ({"columns": "headers"}, "there is no column 'headers'"),
    ],
)
def test_the_error_explains_the_cause(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry, options: dict[str, str], problem: str
) -> None:
    with pytest.raises(Exception, match=problem):
        load(spark, embedded, embedded.create(), registry__url=registry.url, **options)


def test_a_user_reads_which_broker_does_not_answer(spark: "SparkSession") -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(Exception, match=f"No Kafka broker responded at {address}: Connection refused"):
        load(spark, Topics(address), "orders").collect()


class Sink:
    """Rows per batch, once each: what a transactional sink would keep."""

    def __init__(self) -> None:
        self.batches: dict[int, list[str]] = {}

    def __call__(self, frame: "DataFrame", number: int) -> None:
        self.batches[number] = sorted(row.value.decode() for row in frame.select("value").collect())

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.batches.values() for value in batch)


def names(first: int, last: int) -> list[str]:
    return sorted(f"v{n}" for n in range(first, last))


def available_now(frame: "DataFrame", sink: Any, checkpoint: Path) -> "StreamingQuery":
    query = (
        frame.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_stream_keeps_to_its_limit_and_goes_on_from_its_checkpoint(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    topics.produce(topic, [*numbered(70), *numbered(30, 1, first=70)])
    sink = Sink()
    query = available_now(stream(spark, topics, topic, maxOffsetsPerTrigger="40"), sink, tmp_path)
    assert [len(sink.batches[number]) for number in sorted(sink.batches)] == [40, 40, 20]
    assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [40, 40, 20]
    last = query.lastProgress
    assert last is not None
    assert json.loads(last.sources[0].latestOffset) == {topic: {"0": 70, "1": 30}}
    topics.grow(topic, 3)
    topics.produce(topic, [*numbered(5, 0, first=100), *numbered(5, 2, first=105)])
    available_now(stream(spark, topics, topic), sink, tmp_path)
    assert sink.values == names(0, 110)
    assert len(sink.values) == 110
    available_now(stream(spark, topics, topic), sink, tmp_path)
    assert len(sink.values) == 110


def test_a_batch_that_failed_is_repeated_with_the_same_rows(
    spark: "SparkSession", embedded: Topics, tmp_path: Path
) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(20))
    seen: dict[int, list[list[str]]] = {}

    def fail_once(frame: "DataFrame", number: int) -> None:
        seen.setdefault(number, []).append(sorted(row.value.decode() for row in frame.select("value").collect()))
        if len(seen[number]) == 1:
            raise RuntimeError("the sink is away")

    with pytest.raises(Exception, match="the sink is away"):
        available_now(stream(spark, embedded, topic), fail_once, tmp_path)
    embedded.produce(topic, numbered(5, first=20))
    # The offsets are in the log already: whatever the start says now, the batch is the same.
    with pytest.raises(Exception, match="the sink is away"):
        available_now(stream(spark, embedded, topic, startingOffsets="latest"), fail_once, tmp_path)
    assert seen[0] == [names(0, 20), names(0, 20)]
    available_now(stream(spark, embedded, topic), fail_once, tmp_path)
    assert seen[1] == [names(20, 25), names(20, 25)]


def test_a_running_stream_reads_new_records(spark: "SparkSession", embedded: Topics, tmp_path: Path) -> None:
    topic = embedded.create()
    sink = Sink()
    query = (
        stream(spark, embedded, topic, startingOffsets="latest")
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        until(lambda: 0 in sink.batches, query)
        embedded.produce(topic, numbered(3))
        until(lambda: len(sink.values) == 3, query)
        embedded.grow(topic, 2)
        embedded.produce(topic, numbered(2, 1, first=3))
        until(lambda: len(sink.values) == 5, query)
    finally:
        query.stop()
    assert sink.values == names(0, 5)


def test_a_stream_decodes_and_writes_to_another_topic(
    spark: "SparkSession", embedded: Topics, registry: HeadgateRegistry, customer_topic: str, tmp_path: Path
) -> None:
    target = embedded.create(3)
    given = {"subject": f"{customer_topic}-value", "registry__url": registry.url}
    good = stream(spark, embedded, customer_topic, **given).where("reason is null")
    query = (
        good.selectExpr(
            "key", "to_json(value) as value", "array(struct('id' as key, cast('1' as binary) as value)) headers"
        )
        .writeStream.format("headgate")
        .option("bootstrap.servers", embedded.address)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = read(embedded.source(target, includeHeaders="true"))
    assert len(rows) == 300
    assert {json.loads(row["value"])["name"] for row in rows} == {"Ada", "Bob", "Cyd"}
    assert {row["headers"][0]["key"] for row in rows} == {"id"}


def test_a_frame_is_written_and_read_back(spark: "SparkSession", topics: Topics) -> None:
    topic = topics.create(4)
    frame = spark.range(1000).selectExpr("cast(id as string) key", "concat('v', id) value")
    frame.write.format("headgate").option("bootstrap.servers", topics.address).option("topic", topic).mode(
        "append"
    ).save()
    values = sorted(row.value.decode() for row in load(spark, topics, topic).select("value").collect())
    assert values == names(0, 1000)


def test_a_write_that_cannot_be_is_refused_before_it_begins(spark: "SparkSession", embedded: Topics) -> None:
    frame = spark.range(3).selectExpr("id as value")
    with pytest.raises(Exception, match="column value must be binary or string, not bigint"):
        frame.write.format("headgate").option("bootstrap.servers", embedded.address).option("topic", "t").mode(
            "append"
        ).save()
    with pytest.raises(Exception, match="write with mode append"):
        frame.write.format("headgate").option("bootstrap.servers", embedded.address).option("topic", "t").mode(
            "overwrite"
        ).save()


def test_pyspark_finds_the_source_by_itself() -> None:
    """Searches for data sources as PySpark does, in a separate process."""
    code = (
        "from importlib import import_module; from pkgutil import iter_modules; "
        "found = [import_module(m.name).DefaultSource.name() for m in iter_modules() if m.name == 'pyspark_headgate']; "
        "print(found)"
    )
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "['headgate']"


def until(is_so: Any, query: "StreamingQuery", seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, "the stream did not come to it"
        time.sleep(0.05)


def test_workers_and_drivers_see_the_same_columns(spark: "SparkSession", embedded: Topics) -> None:
    """More rows than one batch, in more tasks than cores."""
    topic = embedded.create(2)
    embedded.produce(topic, [*numbered(30_000), *numbered(15_000, 1)], batch__size=200_000)
    frame = load(spark, embedded, topic, minPartitions="6")
    assert frame.rdd.getNumPartitions() == 6
    row = frame.selectExpr("count(*) n", "count(distinct partition, offset) d", "max(length(value)) m").first()
    assert row is not None
    assert (row.n, row.d, row.m) == (45_000, 45_000, 6)
