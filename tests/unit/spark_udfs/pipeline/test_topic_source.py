"""DataFrames of a topic."""

from typing import Any

import httpx
import pytest
from pyspark.sql.types import ArrayType

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.model import Read
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.fake_spark import FakeSession, schema
from tests.unit.spark_udfs.pipeline.examples import frames_of, with_source

pytestmark = pytest.mark.usefixtures("columns_without_session")


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
    options = dict(
        each.split("=", 1) for each in stream.plan.partition("options(")[2].partition(").load")[0].split(", ")
    )
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
    summary, notes = with_source('type = "topic"\n').sources["orders"].describe(frames)
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
    summary, notes = with_source('type = "topic"\ndecode = false').sources["orders"].describe(frames)
    assert (summary, notes) == ("topic orders, not decoded", ("from earliest",))


def test_a_topic_table_is_read_from_the_start_and_needs_its_key_fields(
    registry: StubRegistry, checkpoint: Checkpoint
) -> None:
    table = 'type = "topic"\nread = "table"\n'
    frames = frames_of(f'{table}key = ["id"]')
    assert "startingOffsets=earliest" in frames.stream(FakeSession()).plan
    source = with_source(f'{table}key = ["id"]').sources["orders"]
    assert source.read is Read.TABLE
    assert source.describe(frames)[0].endswith(", as a table by id")
    assert with_source(table).sources["orders"].describe(frames)[0].endswith(", as a table by the record key")
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
        ("version = 1\nschema_id = 2", "version and schema_id are mutually exclusive"),
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
        with_source(f'type = "topic"\n{text}')


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"latest"', "latest"),
        ("{ orders = { 0 = 5 } }", '{"orders": {"0": 5}}'),
        ('\'{"orders": {"0": 5}}\'', '{"orders": {"0": 5}}'),
    ],
)
def test_starting_offsets_have_three_forms(given: str, expected: str) -> None:
    assert with_source(f'type = "topic"\nstarting_offsets = {given}').sources["orders"].starting_offsets == expected
