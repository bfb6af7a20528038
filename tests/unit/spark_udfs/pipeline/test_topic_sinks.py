"""Topic sinks and dead-letter topics."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.spark_udfs.dead_letter import COLUMNS
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.sinks.dead_letter_topic import HEADERS_BYTES_MAX, DeadLetterTopicWriter
from headgate.spark_udfs.pipeline.sinks.topic import OVERHEAD_BYTES, TopicSink, TopicWriter, value_bytes_max
from headgate.spark_udfs.pipeline.sinks.writer import Written
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeSession, schema
from tests.unit.spark_udfs.pipeline.examples import BATCH, KAFKA, ORDER, REGISTRY
from tests.unit.spark_udfs.plans import text_of

pytestmark = pytest.mark.usefixtures("columns_without_session")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    found = FakeSession()
    monkeypatch.setattr("pyspark.sql.SparkSession.active", lambda: found)
    return found


class Writing:
    def __init__(self, **options: Any) -> None:
        self.refused: list[Any] = []
        sink = TopicSink("out", "orders", "orders", "orders-value", **options)
        self.writer = TopicWriter(sink, KAFKA, REGISTRY, lambda rows, batch: self.refused.append((rows, batch)))


def test_rows_are_encoded_once_and_sent(registry: StubRegistry, session: FakeSession) -> None:
    session.answers = [("groupBy", [(False, 3)])]
    writing = Writing(key="id + 1", options={"kafka.max.request.size": "200000"})
    writing.writer.check(schema(id="long"))
    rows: Any = session.frame(schema(id="long"))
    assert writing.writer.write(rows, BATCH) == Written(3, 0)
    persisted, counted, sent, released = session.actions
    assert (persisted, released) == ("persist", "unpersist")
    encoded, _, count = counted.partition(".groupBy(")
    assert encoded.startswith("df.select(CAST(CAST(id + 1 AS STRING) AS BINARY) AS key, ")
    assert ", struct(`id`) AS row).withColumn(problem, CASE WHEN isNotNull(made.reason) THEN " in encoded
    size = "+(octet_length(made.value), coalesce(octet_length(key), 0))"
    assert f"concat(the schema cannot represent the row: , made.reason) WHEN >({size}, 134464)" in encoded
    assert f"THEN concat(the record has , {size},  bytes; the maximum is 134464) END)" in encoded
    assert count == "isNotNull(problem) AS bad).count().collect()"
    assert sent.removeprefix(encoded) == (
        ".where(problem IS NULL).select(key, made.value AS value, array(struct(headgate.batch AS key, "
        "b'01234567-orders-00000012' AS value)) AS headers).write.format(headgate).mode(append)"
        ".options(kafka.bootstrap.servers=kafka:9092, kafka.max.request.size=200000).option(topic, orders).save()"
    )
    assert writing.refused == []


def test_rows_that_cannot_be_sent_are_refused(registry: StubRegistry, session: FakeSession) -> None:
    session.answers = [("groupBy", [(True, 2)]), ("toLocalIterator", [("{}", "too long"), ("{}", "bad")])]
    writing = Writing()
    writing.writer.check(schema(id="long"))
    rows: Any = session.frame(schema(id="long"))
    assert writing.writer.write(rows, BATCH) == Written(0, 2)
    assert writing.refused == [([("{}", "too long"), ("{}", "bad")], BATCH)]
    refused = session.actions[-2]
    assert refused.endswith(".where(problem IS NOT NULL).select(to_json(row), problem).limit(100001).toLocalIterator()")
    assert not any(".save()" in action for action in session.actions)
    assert session.actions[-1] == "unpersist"
    assert "CAST(NULL AS BINARY) AS key" in refused


def test_a_derived_schema_is_registered_for_a_new_subject_only(
    stub_registry: StubRegistry, session: FakeSession
) -> None:
    Writing().writer.check(schema(id="long"))
    assert '"name": "id"' in str(stub_registry.schemas[0]["schema"])
    Writing().writer.check(schema(other="long"))
    assert len(stub_registry.schemas) == 1
    Writing(schema=text_of(ORDER)).writer.check(schema(id="long"))
    assert stub_registry.subjects["orders-value"] == [1, 2]


def test_a_topic_sink_reports_registry_problems(stub_registry: StubRegistry, session: FakeSession) -> None:
    with pytest.raises(PipelineError, match="sink out: "):
        Writing(register=False).writer.check(schema(id="long"))
    assert stub_registry.subjects == {}
    stub_registry.intercept = lambda request: httpx.Response(503)
    with pytest.raises(PipelineError, match=f"the registry at {ADDRESS} does not respond") as caught:
        Writing().writer.check(schema(id="long"))
    assert caught.value.unreachable


@pytest.mark.parametrize(
    ("given", "expected"),
    [("200000", 134464), ("many", 1048576 - OVERHEAD_BYTES), ("", 1048576 - OVERHEAD_BYTES), ("1", OVERHEAD_BYTES)],
)
def test_records_leave_room_for_headers_in_the_request(given: str, expected: int) -> None:
    assert value_bytes_max({"kafka.max.request.size": given} if given else {}) == expected


def test_a_topic_sink_is_read_from_the_file() -> None:
    text = 'checkpoint = "s"\non_poison = "DROP"\n[sources.a]\ntype = "topic"\n'
    text += '[sinks.c]\ntype = "topic"\nfrom = "a"\ntopic = "t"\n'
    sink: Any = check(parse_toml(text, "p.toml", Path("/pipelines"), {}), {}).sinks["c"]
    assert (sink.subject, sink.register, sink.key, sink.topic_options) == ("t-value", True, None, ("t", {}))
    assert sink.describe() == ("topic t, Avro with t-value, looked up", "at least once")
    given = TopicSink("c", "a", "t", "s", schema=text_of(ORDER))
    assert given.describe()[0] == "topic t, Avro with s, registered"
    assert TopicSink("c", "a", "t", "s", "{}", register=False).describe()[0].endswith("looked up")
    assert given.input_mistake(is_stream=True) is None
    mistake = given.input_mistake(is_stream=False)
    assert mistake is not None
    assert mistake[0] == "from"


def test_dead_letters_fit_into_a_request() -> None:
    session = FakeSession()
    table = schema(**dict.fromkeys(COLUMNS, "string"))
    writer = DeadLetterTopicWriter("dead", {"kafka.max.request.size": "200000"}, "shop")
    writer.check(table)
    rows: Any = session.frame(table)
    assert writer.write(rows, BATCH) == Written(0)
    (action,) = session.actions
    left = "-(134464, least(coalesce(octet_length(key), 0), 134464))"
    assert (
        f"withColumn(detail, CASE WHEN >(octet_length(raw), {left}) THEN concat(truncated: the record had , "
        "octet_length(raw),  bytes; , coalesce(detail, )) ELSE detail END)"
    ) in action
    assert (
        f"withColumn(raw, CASE WHEN >(octet_length(raw), {left}) THEN substring(raw, 1, {left}) ELSE raw END)" in action
    )
    assert f"CASE WHEN <=(coalesce(length(to_json(headers)), 0), {HEADERS_BYTES_MAX}) THEN headers END" in action
    assert HEADERS_BYTES_MAX == 32 * 1024
    assert action.endswith(
        ".drop(topic).write.format(headgate).mode(append).options(kafka.max.request.size=200000)"
        ".option(topic, dead).save()"
    )
