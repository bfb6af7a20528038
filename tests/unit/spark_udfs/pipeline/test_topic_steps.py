"""Topic sinks, dead-letter topics, and the frames of topics and files."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import ArrayType, StructType

from headgate.spark_udfs.dead_letter import COLUMNS
from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.model import Read
from headgate.spark_udfs.pipeline.sinks.dead_letter_topic import HEADERS_BYTES_MAX, DeadLetterTopicWriter
from headgate.spark_udfs.pipeline.sinks.topic import OVERHEAD_BYTES, TopicSink, TopicWriter, value_bytes_max
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.sources.source import SourceContext, parse_ddl
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeHadoop, FakeSession, from_ddl, schema
from tests.unit.spark_udfs.plans import record, text_of

pytestmark = pytest.mark.usefixtures("columns_without_session")

BATCH = BatchId("shop", "0123456789abcdef", "orders", 12)
ORDER = record(("id", "long"), name="Order")
REGISTRY = {"registry.url": ADDRESS}
KAFKA = {"kafka.bootstrap.servers": "kafka:9092"}


@pytest.fixture
def registry(stub_registry: StubRegistry) -> StubRegistry:
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    return stub_registry


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
    text = 'checkpoint = "s"\n[sources.a]\ntype = "topic"\non_poison = "DROP"\n[sinks.c]\ntype = "topic"\nfrom = "a"\ntopic = "t"\n'
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
    assert f"withColumn(raw, CASE WHEN >(octet_length(raw), {left}) THEN substring(raw, 1, {left}) ELSE raw END)" in action
    assert f"CASE WHEN <=(coalesce(length(to_json(headers)), 0), {HEADERS_BYTES_MAX}) THEN headers END" in action
    assert HEADERS_BYTES_MAX == 32 * 1024
    assert action.endswith(
        ".drop(topic).write.format(headgate).mode(append).options(kafka.max.request.size=200000)"
        ".option(topic, dead).save()"
    )


def pipeline(source: str) -> Any:
    head = f'checkpoint = "s"\n[kafka]\nbootstrap.servers = "kafka:9092"\n[registry]\nurl = "{ADDRESS}"\n'
    rest = '[sinks.c]\ntype = "console"\nfrom = "orders"\n[dead_letters]\ntype = "topic"\ntopic = "dead"\n'
    return check(parse_toml(f"{head}[sources.orders]\n{source}\n{rest}", "p.toml", Path("/pipelines"), {}), {})


def frames_of(source: str, session: Any = None, checkpoint: Checkpoint | None = None) -> Any:
    found = pipeline(source)
    return found.sources["orders"].open(SourceContext(session or FakeSession(), found, checkpoint))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    hadoop: Any = FakeHadoop()
    return Checkpoint(Files(hadoop), str(tmp_path), "shop", "identity")


DECODED = schema(
    key="binary", value=schema(id="long"), topic="string", partition="integer", offset="long", timestamp="timestamp",
    headers=ArrayType(schema(key="string", value="binary")), reason="string", schema_id="long", raw="binary",
)  # fmt: skip


def test_a_topic_is_read_with_the_policies_of_the_source(registry: StubRegistry) -> None:
    frames = frames_of(
        'type = "topic"\nversion = 1\nfields = ["id"]\nstarting_offsets = "latest"\non_new_version = "RESTART"\n'
        'on_registry_down = "FAIL"\nrows_per_batch = 7\non_poison = "DROP"'
    )
    assert frames.schema == schema(id="long")
    stream = frames.stream(FakeSession())
    assert stream.isStreaming
    options = dict(each.split("=", 1) for each in stream.plan.partition("options(")[2].partition(").load")[0].split(", "))
    assert options == {
        "kafka.bootstrap.servers": "kafka:9092",
        "subscribe": "orders",
        "startingOffsets": "latest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": "7",
        "registry.url": ADDRESS,
        "subject": "orders-value",
        "version": "1",
        "fields": "id",
        "on_poison": "DEAD_LETTER",
        "on_new_version": "RESTART",
        "on_registry_down": "FAIL",
    }
    summary, notes = pipeline('type = "topic"\n').sources["orders"].describe(frames)
    assert summary == "topic orders, AVRO decoded with orders-value version 1, id 1"
    assert notes == ("new version: KEEP; registry down: WAIT; poison: DEAD_LETTER", "from earliest")
    good = frames.good(FakeSession().frame(DECODED))
    assert good.plan == "df.where(reason IS NULL).select(value.*)"


def test_values_that_are_no_records_stay_in_one_column(registry: StubRegistry) -> None:
    registry.add("words-value", {"schema": '"string"'})
    frames = frames_of('type = "topic"\nsubject = "words-value"\nmetadata = true')
    assert frames.schema.names == ["value", "_record"]
    assert not frames.schema["_record"].nullable
    assert frames.schema["_record"].dataType.names == ["topic", "partition", "offset", "timestamp", "key", "schema_id"]
    words: Any = FakeSession().frame(schema(key="binary", value="string", reason="string"))
    position = "struct(topic, partition, offset, timestamp, key, schema_id) AS _record"
    assert frames.good(words).plan == f"df.where(reason IS NULL).select(value, {position})"


def test_a_topic_that_is_not_decoded_has_raw_columns() -> None:
    frames = frames_of('type = "topic"\ndecode = false')
    assert frames.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
    assert "subject" not in frames.stream(FakeSession()).plan
    raw: Any = FakeSession().frame(schema(key="binary", value="binary"))
    assert frames.good(raw).plan == "df.select(key, value, topic, partition, offset, timestamp, headers)"
    summary, notes = pipeline('type = "topic"\ndecode = false').sources["orders"].describe(frames)
    assert (summary, notes) == ("topic orders, not decoded", ("from earliest",))


def test_a_topic_table_is_read_from_the_start_and_needs_its_key_fields(
    registry: StubRegistry, checkpoint: Checkpoint
) -> None:
    table = 'type = "topic"\nread = "table"\n'
    frames = frames_of(f'{table}key = ["id"]')
    assert "startingOffsets=earliest" in frames.stream(FakeSession()).plan
    source = pipeline(f'{table}key = ["id"]').sources["orders"]
    assert source.read is Read.TABLE
    assert source.describe(frames)[0].endswith(", as a table by id")
    assert pipeline(table).sources["orders"].describe(frames)[0].endswith(", as a table by the record key")
    assert frames.open_table(checkpoint, 1.0).query
    with pytest.raises(PipelineError, match="there is no key field ids; did you mean id"):
        frames_of(f'{table}key = ["ids"]').open_table(checkpoint, 1.0)


def test_the_row_of_a_table_is_null_if_the_value_is_null(registry: StubRegistry) -> None:
    registry.add("words-value", {"schema": '"string"'})
    frame: Any = FakeSession().frame(DECODED)

    def row(source: str, decoded: Any = frame) -> str:
        return str(frames_of(f'type = "topic"\nread = "table"\n{source}')._row(decoded))

    position = "struct(topic, partition, offset, timestamp, key, schema_id) AS _record"
    assert row("") == "Column<'value'>"
    with_position = f"Column<'CASE WHEN isNotNull(value) THEN struct(value['id'] AS id, {position}) END'>"
    assert row("metadata = true") == with_position
    words: Any = FakeSession().frame(schema(key="binary", value="string", reason="string"))
    assert row('subject = "words-value"', words) == "Column<'CASE WHEN isNotNull(value) THEN struct(value) END'>"


def test_a_missing_subject_or_registry_is_a_pipeline_error(registry: StubRegistry) -> None:
    with pytest.raises(PipelineError, match="source orders: ") as caught:
        frames_of('type = "topic"\nsubject = "nobody"')
    assert not caught.value.unreachable
    registry.intercept = lambda request: httpx.Response(503)
    with pytest.raises(PipelineError, match="source orders: ") as caught:
        frames_of('type = "topic"')
    assert caught.value.unreachable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('version = 1\nschema_id = 2', "version and schema_id are mutually exclusive"),
        ('key = ["id"]', 'requires read = "table"'),
        ('decode = false\nread = "table"', "the values of a table must be decoded"),
        ('decode = false\nsubject = "x"', "has no effect with decode = false"),
        ('options = { subscribe = "x" }', "use the key topic instead"),
        ('options = { Flat = "true" }', "is set by the pipeline"),
        ('read = "table"\nstarting_offsets = "latest"', "has no effect on a table"),
        ('starting_offsets = "now"', "expected earliest, latest or offsets"),
        ('starting_offsets = "[1]"', "expected earliest, latest or offsets"),
        ("starting_offsets = 5", "expected earliest, latest or offsets"),
    ],
)
def test_mistakes_of_a_topic_source_are_reported(text: str, message: str) -> None:
    with pytest.raises(PipelineMistakes, match=message):
        pipeline(f'type = "topic"\n{text}')


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"latest"', "latest"),
        ('{ orders = { 0 = 5 } }', '{"orders": {"0": 5}}'),
        ("'{\"orders\": {\"0\": 5}}'", '{"orders": {"0": 5}}'),
    ],
)
def test_starting_offsets_have_three_forms(given: str, expected: str) -> None:
    assert pipeline(f'type = "topic"\nstarting_offsets = {given}').sources["orders"].starting_offsets == expected


@pytest.fixture
def _ddl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StructType, "fromDDL", from_ddl)


@pytest.mark.usefixtures("_ddl")
def test_malformed_lines_of_files_are_corrupt() -> None:
    frames = frames_of('type = "files"\npath = "/in/*.csv"\nschema = "id bigint"\nfiles_per_batch = 3\noptions = { sep = ";" }')
    assert frames.stream(FakeSession()).plan == (
        "readStream.format(csv).schema(struct<id:bigint,_corrupt_record:string>).options(sep=;, header=true, "
        "mode=PERMISSIVE, columnNameOfCorruptRecord=_corrupt_record).option(maxFilesPerTrigger, 3).load(/in/*.csv)"
        ".select(struct(`id`) AS value, CASE WHEN isNotNull(_corrupt_record) THEN CORRUPT END AS reason, "
        "encode(_corrupt_record, UTF-8) AS raw, CASE WHEN isNotNull(_corrupt_record) THEN "
        "concat(cannot parse a line of , _metadata.file_path) END AS detail)"
    )
    assert frames.good(FakeSession().frame(schema(value="string"))).plan == "df.where(reason IS NULL).select(value.*)"


@pytest.mark.usefixtures("_ddl")
def test_binary_files_have_no_malformed_lines(checkpoint: Checkpoint) -> None:
    source = 'type = "files"\npath = "/in/*.parquet"\nschema = "id bigint"\nread = "table"'
    frames = frames_of(source)
    session = FakeSession()
    table = frames.open_table(checkpoint, 3.0)
    assert table.seconds == 3.0
    plan = table.frame(session).plan
    assert plan.startswith("read.format(parquet).schema(struct<id:bigint>).options().load(/in/*.parquet).select(")
    assert "CASE WHEN isNotNull(CAST(NULL AS STRING)) THEN CORRUPT END AS reason" in plan
    assert plan.endswith(".where(reason IS NULL).select(value.*)")
    found = pipeline(source).sources["orders"]
    assert not found.needs_dead_letters
    assert found.describe(frames)[0] == "parquet files /in/*.parquet, as a table"
    csv = pipeline('type = "files"\npath = "/in/*.csv"').sources["orders"]
    assert csv.needs_dead_letters
    assert csv.describe(frames)[0] == "csv files /in/*.csv"
    assert csv.files_per_batch is None
    assert "maxFilesPerTrigger" not in frames.stream(session).plan


def test_inferred_columns_are_stored_at_the_first_start(checkpoint: Checkpoint) -> None:
    session = FakeSession(("read.format(csv)", schema(id="long", _corrupt_record="string")))
    source = 'type = "files"\npath = "/in/*.csv"'
    assert frames_of(source, session).schema == schema(id="long")
    assert session.actions == ["read.format(csv).options().option(header, true).option(inferSchema, true).load(/in/*.csv)"]
    assert checkpoint.read_json("schemas", "orders") is None
    assert frames_of(source, session, checkpoint).schema == schema(id="long")
    changed = FakeSession(("read.format(csv)", schema(other="long")))
    assert frames_of(source, changed, checkpoint).schema == schema(id="long")
    assert changed.actions == []
    headless = FakeSession(("read.format(csv)", schema(_c0="long")))
    frames_of(source + '\noptions = { header = "false" }', headless)
    assert ".option(header, false)" in headless.actions[0]
    json = FakeSession(("read.format(json)", schema(id="long")))
    frames_of('type = "files"\npath = "/in/*.json"', json)
    assert json.actions == ["read.format(json).options().load(/in/*.json)"]


def test_files_without_known_columns_are_reported() -> None:
    source = 'type = "files"\npath = "/in/*.csv"'
    with pytest.raises(PipelineError, match="have no columns"):
        frames_of(source, FakeSession(("read.format(csv)", schema(_corrupt_record="string"))))
    with pytest.raises(PipelineError, match=r"columns of /in/\*\.csv are unknown\. nothing here") as caught:
        frames_of(source, FakeSession(("read.format(csv)", AnalysisException("nothing here\nplan"))))
    assert "schema = 'id BIGINT, name STRING'" in caught.value.advice
    with pytest.raises(PipelineError, match=r"this Spark cannot read Avro files\. no avro\.") as caught:
        frames_of('type = "files"\npath = "/in/*.avro"', FakeSession(("read.format(avro)", AnalysisException("no avro\nplan"))))
    assert "spark-avro_2.13:4.2.1" in caught.value.advice


def test_declared_columns_must_be_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> Any:
        raise ParseException("syntax error\n\nat line 1")

    monkeypatch.setattr(StructType, "fromDDL", fail)
    with pytest.raises(PipelineError, match=r"source orders: schema is not a list of columns .*\. syntax error$"):
        parse_ddl("???", "orders")
    monkeypatch.setattr(StructType, "fromDDL", lambda text: ArrayType(StructType()))
    with pytest.raises(PipelineError, match="is not a list of columns"):
        parse_ddl("array<int>", "orders")


@pytest.mark.parametrize(
    ("path", "format_"), [("/in/a.TSV", "csv"), ("/in/*.ndjson*", "json"), ("/in/x.parquet", "parquet")]
)
def test_the_format_of_files_follows_from_the_suffix(path: str, format_: str) -> None:
    assert pipeline(f'type = "files"\npath = "{path}"').sources["orders"].format == format_


def test_files_without_a_known_suffix_need_a_format() -> None:
    with pytest.raises(PipelineMistakes, match="has no known suffix"):
        pipeline('type = "files"\npath = "/in/x"')
    with pytest.raises(PipelineMistakes) as caught:
        pipeline('type = "files"\npath = "/in/x"\nformat = "xml"')
    assert "no known suffix" not in str(caught.value)
    assert pipeline('type = "files"\npath = "/in/x"\nformat = "json"').sources["orders"].format == "json"
