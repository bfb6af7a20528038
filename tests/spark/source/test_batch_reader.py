"""Batch queries, without Spark around them: which rows come, from where to where, and what is said when they do not."""

import json
from datetime import UTC, datetime

import pytest
from pyarrow import lib as pa
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.spark_udfs.source.errors import BadOption, BrokerUnreachable, DataLost, TopicMissing
from tests.live.ports import free_port
from tests.spark.source.topics import Message, Topics, numbered, read, rows_of

NOON = 1_700_000_000_000
FOREVER = {"retention.ms": "-1"}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_as_they_were_written(topics: Topics, compression: str) -> None:
    topic = topics.create(2, config=FOREVER)
    messages = [
        Message("key", "value", [("trace", b"1"), ("trace", None)], NOON, 0),
        Message(None, b"\x00\xff" * 300, (), NOON + 1, 0),
        Message("gone", None, [("", b"")], NOON + 2, 1),
        Message("", "", (), NOON + 3, 1),
    ]
    topics.produce(topic, messages, compression__type=compression)
    rows = read(topics.source(topic, includeHeaders="true"))
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["key"] for row in rows] == [b"key", None, b"gone", b""]
    assert [row["value"] for row in rows] == [b"value", b"\x00\xff" * 300, None, b""]
    assert {row["topic"] for row in rows} == {topic}
    assert [row["timestamp"].timestamp() * 1000 for row in rows] == [NOON, NOON + 1, NOON + 2, NOON + 3]
    assert {row["timestampType"] for row in rows} == {0}
    header = {"key": "trace", "value": b"1"}
    assert [row["headers"] for row in rows] == [
        [header, {"key": "trace", "value": None}],
        None,
        [{"key": "", "value": b""}],
        None,
    ]


def test_batches_are_of_the_very_type_that_spark_asks_for(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, [Message("k", "v", [("h", b"1")])])
    source = embedded.source(topic, includeHeaders="true")
    schema = source.schema()
    reader = source.reader(schema)
    (batch,) = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert isinstance(batch, pa.RecordBatch)
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))


def test_log_append_time_has_its_own_timestamp_type(embedded: Topics) -> None:
    topic = embedded.create(config={"message.timestamp.type": "LogAppendTime"})
    embedded.produce(topic, [Message("k", "v", timestamp=NOON)])
    (row,) = read(embedded.source(topic))
    assert row["timestampType"] == 1
    assert row["timestamp"] > datetime(2024, 1, 1, tzinfo=UTC)


def test_an_empty_topic_has_no_rows(topics: Topics) -> None:
    assert read(topics.source(topics.create(3))) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "earliest"}, [(0, range(10)), (1, range(10))]),
        ({"startingOffsets": {0: 3, 1: -2}}, [(0, range(3, 10)), (1, range(10))]),
        ({"startingOffsets": {0: 10, 1: 9}}, [(1, range(9, 10))]),
        ({"endingOffsets": {0: 4, 1: -1}}, [(0, range(4)), (1, range(10))]),
        ({"startingOffsets": {0: 2, 1: 2}, "endingOffsets": {0: 5, 1: 2}}, [(0, range(2, 5))]),
        ({"startingTimestamp": str(NOON + 7)}, [(0, range(7, 10)), (1, range(7, 10))]),
        ({"endingTimestamp": str(NOON + 2)}, [(0, range(2)), (1, range(2))]),
        ({"endingTimestamp": str(NOON + 999)}, [(0, range(10)), (1, range(10))]),
        ({"startingOffsetsByTimestamp": {0: NOON + 8, 1: 0}}, [(0, range(8, 10)), (1, range(10))]),
        ({"endingOffsetsByTimestamp": {0: NOON + 1, 1: NOON}}, [(0, range(1))]),
        ({"startingTimestamp": str(NOON + 99), "startingOffsetsByTimestampStrategy": "latest"}, []),
    ],
    ids=str,
)
def test_a_query_reads_from_the_start_to_the_end_offset(
    topics: Topics, options: dict[str, object], expected: list[tuple[int, range]]
) -> None:
    topic = topics.create(2, config=FOREVER)
    messages = [Message("k", "v", (), NOON + n, partition) for partition in (0, 1) for n in range(10)]
    topics.produce(topic, messages)
    given = {name: json.dumps({topic: v}) if isinstance(v, dict) else str(v) for name, v in options.items()}
    rows = [(row["partition"], row["offset"]) for row in read(topics.source(topic, **given))]
    assert rows == [(partition, offset) for partition, offsets in expected for offset in offsets]


def test_a_start_inside_a_batch_skips_earlier_records(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(1000), compression__type="zstd", linger__ms=200)
    given = {"startingOffsets": json.dumps({topic: {0: 501}}), "endingOffsets": json.dumps({topic: {0: 503}})}
    assert [row["value"] for row in read(embedded.source(topic, **given))] == [b"v501", b"v502"]


def test_several_tasks_share_a_partition(topics: Topics) -> None:
    topic = topics.create(2)
    topics.produce(topic, numbered(900) + numbered(100, 1))
    source = topics.source(topic, minPartitions="10")
    assert len(source.reader(source.schema()).partitions()) == 10
    rows = read(source)
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (partition, offset) for partition, count in ((0, 900), (1, 100)) for offset in range(count)
    ]


def test_tasks_have_a_bound_on_their_records(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(100))
    source = embedded.source(topic, maxRecordsPerPartition="30")
    assert len(source.reader(source.schema()).partitions()) == 4
    assert len(read(source)) == 100


def test_topics_are_found_by_pattern_and_partitions_by_number(topics: Topics) -> None:
    first, second = topics.create(2), topics.create(1)
    topics.produce(first, [*numbered(3), *numbered(2, 1)])
    topics.produce(second, numbered(4))
    assert len(read(topics.source(subscribePattern=f"{first}|{second}"))) == 9
    assert len(read(topics.source(subscribePattern=f"{first[:-1]}."))) == 5
    assert len(read(topics.source(subscribePattern="nothing-is-called-this"))) == 0
    assert len(read(topics.source(assign=json.dumps({first: [1], second: [0]})))) == 6
    assert len(read(topics.source(f"{first},{second}"))) == 9


def test_only_the_columns_asked_for_come_in_their_order(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(2))
    assert read(embedded.source(topic, columns="offset, VALUE")) == [
        {"offset": 0, "value": b"v0"},
        {"offset": 1, "value": b"v1"},
    ]
    with pytest.raises(BadOption, match="no column 'headers'"):
        embedded.source(topic, columns="headers").schema()


def test_a_large_record_comes_alone_and_whole(embedded: Topics) -> None:
    topic = embedded.create(config={"max.message.bytes": "20000000"})
    large = b"x" * 9_000_000
    messages = [Message("a", b"1"), Message("b", large), Message("c", b"3")]
    embedded.produce(topic, messages, message__max__bytes=20_000_000)
    rows = read(embedded.source(topic, kafka__max__partition__fetch__bytes="1000"))
    assert [row["value"] for row in rows] == [b"1", large, b"3"]


@pytest.mark.kafka
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_are_read_as_the_isolation_says(apache_kafka: str, isolation: str) -> None:
    topics = Topics(apache_kafka)
    topic = topics.create()
    topics.produce(topic, [Message("plain", "0")])
    for keep, value in ((True, "1"), (False, "2"), (True, "3")):
        producer = topics.transactional()
        producer.begin_transaction()
        topics.send(producer, topic, [Message("tx", value), Message("tx", value * 2)])
        (producer.commit_transaction if keep else producer.abort_transaction)(30)
    left_open = topics.transactional()
    left_open.begin_transaction()
    topics.send(left_open, topic, [Message("open", "4")])
    values = [row["value"].decode() for row in read(topics.source(topic, kafka__isolation__level=isolation))]
    left_open.abort_transaction(30)
    if isolation == "read_committed":
        assert values == ["0", "1", "11", "3", "33"]
    else:
        assert values == ["0", "1", "11", "2", "22", "3", "33", "4"]


@pytest.mark.kafka
def test_a_start_inside_an_aborted_transaction_reads_none_of_it(apache_kafka: str) -> None:
    topics = Topics(apache_kafka)
    topic = topics.create()
    producer = topics.transactional()
    for keep in (False, True):
        producer.begin_transaction()
        topics.send(producer, topic, numbered(5))
        (producer.commit_transaction if keep else producer.abort_transaction)(30)
    given = {"kafka.isolation.level": "read_committed", "startingOffsets": json.dumps({topic: {0: 3}})}
    assert [row["offset"] for row in read(topics.source(topic, **given))] == [6, 7, 8, 9, 10]


def test_offsets_that_retention_took_fail_the_query_or_are_left_out(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, numbered(20))
    topics.trim(topic, 0, 12)
    start = json.dumps({topic: {0: 5}})
    with pytest.raises(DataLost) as failed:
        read(topics.source(topic, startingOffsets=start))
    assert f"{topic}-0 has no offset 5: its log holds 12 up to 20" in str(failed.value)
    assert "failOnDataLoss" in str(failed.value)
    rows = read(topics.source(topic, startingOffsets=start, failOnDataLoss="false"))
    assert [row["offset"] for row in rows] == list(range(12, 20))


def test_offsets_that_go_between_planning_and_reading_are_noticed(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, numbered(20))
    for accepted in (False, True):
        source = topics.source(topic, failOnDataLoss="false" if accepted else "true")
        reader = source.reader(source.schema())
        planned = reader.partitions()
        if not accepted:
            topics.trim(topic, 0, 12)
            with pytest.raises(DataLost, match="Offsets 0 to 11 of"):
                list(reader.read(planned[0]))
        else:
            topics.trim(topic, 0, 15)
            offsets = [row["offset"] for row in rows_of(reader.read(planned[0]))]
            assert offsets == list(range(15, 20))


def test_offsets_past_the_end_are_rejected_with_the_valid_range(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(3))
    end = json.dumps({topic: {0: 7}})
    with pytest.raises(DataLost, match=r"endingOffsets.* has no offset 7: its log holds 0 up to 3"):
        read(embedded.source(topic, endingOffsets=end))
    assert len(read(embedded.source(topic, endingOffsets=end, failOnDataLoss="false"))) == 3


def test_offsets_must_name_every_partition_and_no_other(embedded: Topics) -> None:
    topic = embedded.create(2)
    with pytest.raises(BadOption, match=f"{topic}-1 is missing"):
        read(embedded.source(topic, startingOffsets=json.dumps({topic: {0: 0}})))
    with pytest.raises(BadOption, match=f"{topic}-2 is not among"):
        read(embedded.source(topic, startingOffsets=json.dumps({topic: {0: 0, 1: 0, 2: 0}})))
    with pytest.raises(BadOption, match="is missing"):
        read(embedded.source(topic, endingOffsetsByTimestamp=json.dumps({topic: {0: 0}})))


def test_an_end_before_the_start_is_refused(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(5))
    given = {"startingOffsets": json.dumps({topic: {0: 4}}), "endingOffsets": json.dumps({topic: {0: 2}})}
    with pytest.raises(BadOption, match="would end at offset 2, before its start at 4"):
        read(embedded.source(topic, **given))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"startingTimestamp": "{4}"}, {"endingTimestamp": "{2}"}),
        ({"startingOffsetsByTimestamp": '{"{topic}": {"0": {4}}}'}, {"endingTimestamp": "{2}"}),
        ({"startingOffsets": '{"{topic}": {"0": 4}}'}, {"endingOffsetsByTimestamp": '{"{topic}": {"0": {2}}}'}),
    ],
)
def test_an_end_in_time_before_the_start_is_refused(topics: Topics, start: dict[str, str], end: dict[str, str]) -> None:
    """An empty frame would hide that the two were mixed up."""
    topic = topics.create(config={"retention.ms": "-1"})
    began = 1_700_000_000_000
    topics.produce(topic, [Message("k", "v", timestamp=began + n) for n in range(6)])
    given = dict(start | end)
    for name, text in given.items():
        given[name] = text.replace("{topic}", topic).replace("{4}", str(began + 4)).replace("{2}", str(began + 2))
    with pytest.raises(
        BadOption, match=f"Option '{next(iter(end))}': {topic}-0 would end at offset 2, before its start"
    ):
        read(topics.source(topic, **given))


def test_a_time_after_the_last_record_is_refused_unless_latest_will_do(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, [Message("k", "v", timestamp=NOON)])
    with pytest.raises(BadOption, match="no record at or after that time"):
        read(embedded.source(topic, startingTimestamp=str(NOON + 1)))


def test_a_topic_that_is_not_there_is_named_and_not_created(topics: Topics) -> None:
    with pytest.raises(TopicMissing, match="no-such-topic is not in the cluster"):
        read(topics.source("no-such-topic"))
    with pytest.raises(TopicMissing, match="no-such-topic"):
        read(topics.source(assign='{"no-such-topic": [0]}'))
    assert "no-such-topic" not in topics.admin.list_topics(timeout=30).topics
    topic = topics.create()
    with pytest.raises(TopicMissing, match=f"{topic}-4"):
        read(topics.source(assign=json.dumps({topic: [4]})))


def test_the_error_names_an_unreachable_broker_and_has_advice() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnreachable) as failed:
        read(Topics(address).source("orders"))
    text = str(failed.value)
    assert address in text
    assert "refused" in text.lower() or "connect" in text.lower()
    assert "bootstrap.servers" in text
