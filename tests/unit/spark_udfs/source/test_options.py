"""Every option that cannot be meant is refused by its name, before anything is asked of a broker."""

import pickle

import pytest
from aiokafka.structs import TopicPartition

from headgate.kafka_client.fetch import Isolation
from headgate.spark_udfs.driver.reader_choice import ReaderChoice, TypedChoice
from headgate.spark_udfs.source.errors import BadOption, DataLost
from headgate.spark_udfs.source.options import read_options, write_options
from headgate.spark_udfs.source.positions import EARLIEST, LATEST, AtEdge, AtOffsets, AtTimes, NoMatch

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
NEEDED = {"bootstrap.servers": "localhost:9092", "subscribe": "orders"}

BAD_READS = [
    ({"bootstrap.servers": ""}, "bootstrap.servers", "empty"),
    ({"bootstrap.servers": "localhost"}, "bootstrap.servers", "host:port"),
    ({"bootstrap.servers": "localhost:99999"}, "bootstrap.servers", "host:port"),
    ({"kafka.bootstrap.servers": "other:9092"}, "bootstrap.servers", "another address"),
    ({"subscribe": " , "}, "subscribe", "no topic"),
    ({"subscribe": "a b"}, "subscribe", "cannot be a topic's name"),
    ({"subscribePattern": "o.*"}, "subscribe", "excludes subscribePattern"),
    ({"startingOffsets": "soon"}, "startingOffsets", "earliest, latest or JSON"),
    ({"startingOffsets": "{"}, "startingOffsets", "not JSON"),
    ({"startingOffsets": "[" * 100_000}, "startingOffsets", "earliest, latest or JSON"),
    ({"startingOffsets": '{"a":' * 100_000}, "startingOffsets", "nested too deep"),
    ({"startingOffsets": '{"orders": 3}'}, "startingOffsets", "under topic orders"),
    ({"startingOffsets": '{"orders": {"x": 3}}'}, "startingOffsets", "number of a partition"),
    ({"startingOffsets": '{"orders": {"0": "3"}}'}, "startingOffsets", "whole number"),
    ({"startingOffsets": '{"orders": {"0": true}}'}, "startingOffsets", "whole number"),
    ({"startingOffsets": '{"orders": {"0": -3}}'}, "startingOffsets", "whole number"),
    ({"startingOffsets": '{"orders": {"0": 1, "0": 2}}'}, "startingOffsets", "twice"),
    ({"startingOffsets": "latest"}, "startingOffsets", "read nothing"),
    ({"startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets", "latest (-1) for orders-0"),
    ({"endingOffsets": "earliest"}, "endingOffsets", "read nothing"),
    ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets", "earliest (-2) for orders-0"),
    ({"startingTimestamp": "yesterday"}, "startingTimestamp", "milliseconds"),
    ({"endingTimestamp": "-1"}, "endingTimestamp", "milliseconds"),
    ({"startingOffsetsByTimestamp": "7"}, "startingOffsetsByTimestamp", "JSON object"),
    ({"startingOffsetsByTimestampStrategy": "guess"}, "startingOffsetsByTimestampStrategy", "error or latest"),
    ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger", "from 1"),
    ({"maxOffsetsPerTrigger": "9" * 30}, "maxOffsetsPerTrigger", "from 1"),
    ({"maxOffsetsPerTrigger": str(2**63)}, "maxOffsetsPerTrigger", f"to {2**63 - 1}"),
    ({"minPartitions": str(2**31)}, "minPartitions", f"to {2**31 - 1}"),
    ({"minPartitions": "many"}, "minPartitions", "whole number"),
    ({"maxRecordsPerPartition": "-5"}, "maxRecordsPerPartition", "whole number"),
    ({"failOnDataLoss": "perhaps"}, "failOnDataLoss", "true or false"),
    ({"includeHeaders": "1"}, "includeHeaders", "true or false"),
    ({"columns": ","}, "columns", "no column"),
    ({"flat": "yes"}, "flat", "true or false"),
    ({"kafka.isolation.level": "committed"}, "kafka.isolation.level", "read_committed or read_uncommitted"),
    ({"kafka.max.partition.fetch.bytes": "2g"}, "kafka.max.partition.fetch.bytes", "whole number"),
    ({"on_poison": "IGNORE", "subject": "orders-value"}, "on_poison", "DEAD_LETTER, NULL, DROP, FAIL"),
    ({"on_new_version": "NEVER", "subject": "orders-value"}, "on_new_version", "KEEP, FAIL, RESTART"),
    ({"on_registry_down": "HOPE", "subject": "orders-value"}, "on_registry_down", "WAIT, FAIL, DEAD_LETTER"),
    ({"version": "2"}, "version", "subject"),
    ({"subject": "orders-value", "version": "two"}, "version", "whole number"),
    ({"subject": "orders-value", "version": "1", "schema_id": "2"}, "subject", "mutually exclusive"),
    ({"subject": "a", "value.subject": "b"}, "subject", "another one"),
    ({"subject": "orders-value", "fields": "[1]"}, "fields", "names such as"),
    ({"subject": "orders-value", "fields": " , "}, "fields", "no field"),
    ({"kafka.group.id": "mine"}, "kafka.group.id", "without a consumer group"),
    ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset", "startingOffsets"),
    ({"path": "orders"}, "path", "subscribe"),
    ({"topic": "orders"}, "topic", "subscribe"),
    ({"startingOfsets": "earliest"}, "startingofsets", "did you mean startingOffsets?"),
    ({"kafka.fetch.bytes.maximum": "1"}, "kafka.fetch.bytes.maximum", "no such option"),
    ({"registry.address": "http://localhost"}, "registry.address", "no such option"),
]


@pytest.mark.parametrize(("changes", "option", "problem"), BAD_READS, ids=lambda part: str(part)[:40])
def test_a_bad_option_is_named(changes: dict[str, str], option: str, problem: str) -> None:
    with pytest.raises(BadOption) as failed:
        read_options({**NEEDED, **changes}, is_streaming=False)
    assert str(failed.value).startswith(f"Option '{option}': ")
    assert problem in str(failed.value)
    assert str(pickle.loads(pickle.dumps(failed.value))) == str(failed.value)


@pytest.mark.parametrize("missing", ["bootstrap.servers", "subscribe"])
def test_a_missing_required_option_is_an_error(missing: str) -> None:
    with pytest.raises(BadOption, match=missing):
        read_options({name: text for name, text in NEEDED.items() if name != missing}, is_streaming=False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("orders", "must be JSON"),
        ("{}", "must be JSON"),
        ('{"orders": 0}', "list of partitions"),
        ('{"orders": []}', "list of partitions"),
        ('{"orders": [-1]}', "number of a partition"),
        ('{"orders": [99999999999]}', "number of a partition"),
        ('{"orders": ["²"]}', "number of a partition"),
        ('{"a/b": [0]}', "cannot be a topic's name"),
    ],
)
def test_assign_is_json_of_topics_and_partitions(text: str, problem: str) -> None:
    with pytest.raises(BadOption, match="'assign'") as failed:
        read_options({"bootstrap.servers": "localhost:9092", "assign": text}, is_streaming=False)
    assert problem in str(failed.value)


@pytest.mark.parametrize("pattern", ["", "(", "a{99999999999}"])
def test_a_pattern_must_be_a_regular_expression(pattern: str) -> None:
    with pytest.raises(BadOption, match="subscribePattern"):
        read_options({"bootstrap.servers": "localhost:9092", "subscribePattern": pattern}, is_streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption, match="a stream has no end"):
        read_options({**NEEDED, name: "1"}, is_streaming=True)


def test_names_are_read_in_any_case_as_spark_hands_them_over() -> None:
    options = read_options(
        {
            "KAFKA.BOOTSTRAP.SERVERS": "a:1, b:2",
            "subscribe": "x, y,x",
            "STARTINGOFFSETS": "Latest",
            "maxoffsetspertrigger": "7",
            "failOnDataLoss": "FALSE",
            "kafka.isolation.level": "read_committed",
        },
        is_streaming=True,
    )
    assert options.connection.servers == ("a:1", "b:2")
    assert options.selection.topics == ("x", "y")
    assert options.start == AtEdge(LATEST)
    assert options.records_per_trigger_max == 7
    assert not options.is_loss_fatal
    assert options.isolation is Isolation.READ_COMMITTED


def test_a_batch_begins_with_the_earliest_and_a_stream_with_the_latest() -> None:
    assert read_options(NEEDED, is_streaming=False).start == AtEdge(EARLIEST)
    assert read_options(NEEDED, is_streaming=True).start == AtEdge(LATEST)


def test_a_time_goes_before_offsets_by_time_and_those_before_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}
    by_partition = read_options({**NEEDED, **given}, is_streaming=False).start
    assert isinstance(by_partition, AtTimes)
    assert by_partition.by_partition == {("orders", 0): 5}
    everywhere = read_options(
        {**NEEDED, **given, "startingTimestamp": "9", "startingOffsetsByTimestampStrategy": "latest"},
        is_streaming=False,
    ).start
    assert everywhere == AtTimes(None, 9, NoMatch.LATEST)


def test_offsets_are_read_as_in_sparks_kafka_source() -> None:
    given = {"startingOffsets": '{"orders": {"0": 23, "1": -2}}', "endingOffsets": '{"orders": {"0": 50, "1": -1}}'}
    options = read_options({**NEEDED, **given}, is_streaming=False)
    assert options.start == AtOffsets({FIRST: 23, SECOND: EARLIEST})
    assert options.end == AtOffsets({FIRST: 50, SECOND: LATEST})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kafka.acks": "1"}, "acks=all"),
        ({"kafka.enable.idempotence": "false"}, "always written with an idempotent producer"),
        ({"kafka.compression.type": "brotli"}, "one of none, gzip"),
        ({"topic": "a b"}, "cannot be a topic's name"),
        ({"subscribe": "orders"}, "no such option to write with"),
        ({"kafka.max.request.size": "0"}, "from 1"),
    ],
)
def test_a_sink_rejects_unsupported_options(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption) as failed:
        write_options({"bootstrap.servers": "localhost:9092", **changes})
    assert problem in str(failed.value)


def test_a_sink_accepts_the_options_that_spark_adds() -> None:
    options = write_options({"bootstrap.servers": "a:1", "topic": "out", "checkpointlocation": "/c", "queryname": "q"})
    assert options.topic == "out"


def test_data_loss_has_advice_and_can_be_pickled() -> None:
    error = DataLost("Offsets 1 to 2 of orders-0 are gone.")
    assert "failOnDataLoss" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_no_secret_is_in_the_text_of_the_options() -> None:
    given = {
        "bootstrap.servers": "localhost:9092",
        "subscribe": "orders",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "me",
        "kafka.sasl.password": "hush-hush",
        "kafka.ssl.key.password": "hush-hush",
        "registry.basic.auth.user.info": "me:hush-hush",
    }
    assert "hush-hush" not in repr(read_options(given, is_streaming=False))


@pytest.mark.parametrize(
    ("options", "name", "problem"),
    [
        ({"key.subject": " , "}, "key.subject", "names no subject"),
        ({"key.subject": "[1]"}, "key.subject", "names such as"),
        ({"key.version": "two", "key.subject": "k"}, "key.version", "whole number"),
        ({"key.fields": "id"}, "key.fields", "a subject is required"),
        ({"key.subject": "a,b", "key.version": "1"}, "key.subject", "one subject only"),
        ({"subject": "a,A"}, "subject", "must differ"),
        ({"subject": "a,b", "fields": "id"}, "subject", "fields can be used with one subject only"),
        ({"on_poison": "FAIL"}, "subject", "a subject is required"),
        ({"topicPattern": "o.*"}, "subscribe", "excludes subscribePattern"),
    ],
)
def test_invalid_options_for_keys_and_subjects_are_rejected(options: dict[str, str], name: str, problem: str) -> None:
    with pytest.raises(BadOption, match=problem) as caught:
        read_options({**NEEDED, **options}, is_streaming=False)
    assert f"'{name}'" in str(caught.value)


def test_keys_and_values_have_their_own_readers() -> None:
    options = read_options(
        {**NEEDED, "subject": '["a", "b"]', "key.subject": "k", "key.version": "3"}, is_streaming=False
    )
    assert options.decoding is not None
    assert options.decoding.choice == TypedChoice(("a", "b"))
    assert options.decoding.key == ReaderChoice("k", version=3)
    only = read_options({**NEEDED, "key.subject": "k"}, is_streaming=False).decoding
    assert only is not None
    assert (only.choice, only.key) == (None, ReaderChoice("k"))


def test_a_pattern_has_two_names() -> None:
    for name in ("subscribePattern", "topicPattern"):
        options = read_options({"bootstrap.servers": "localhost:9092", name: "o.*"}, is_streaming=False)
        assert options.selection.pattern == "o.*"
