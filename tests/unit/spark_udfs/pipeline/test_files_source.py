"""DataFrames of files."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import ArrayType, StructType

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.sources.source import parse_ddl
from tests.unit.spark_udfs.fake_spark import FakeSession, schema
from tests.unit.spark_udfs.pipeline.examples import frames_of, with_source

pytestmark = pytest.mark.usefixtures("columns_without_session")


@pytest.mark.usefixtures("ddl_without_session")
def test_malformed_lines_of_files_are_corrupt() -> None:
    frames = frames_of(
        'type = "files"\npath = "/in/*.csv"\nschema = "id bigint"\nfiles_per_batch = 3\noptions = { sep = ";" }'
    )
    assert frames.stream(FakeSession()).plan == (
        "readStream.format(csv).schema(struct<id:bigint,_corrupt_record:string>).options(sep=;, header=true, "
        "mode=PERMISSIVE, columnNameOfCorruptRecord=_corrupt_record).option(maxFilesPerTrigger, 3).load(/in/*.csv)"
        ".select(struct(`id`) AS value, CASE WHEN isNotNull(_corrupt_record) THEN CORRUPT END AS reason, "
        "encode(_corrupt_record, UTF-8) AS raw, CASE WHEN isNotNull(_corrupt_record) THEN "
        "concat(cannot parse a line of , _metadata.file_path) END AS detail)"
    )
    assert frames.good(FakeSession().frame(schema(value="string"))).plan == "df.where(reason IS NULL).select(value.*)"


@pytest.mark.usefixtures("ddl_without_session")
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
    found = with_source(source).sources["orders"]
    assert not found.needs_dead_letters
    assert found.describe(frames)[0] == "parquet files /in/*.parquet, as a table"
    csv = with_source('type = "files"\npath = "/in/*.csv"').sources["orders"]
    assert csv.needs_dead_letters
    assert csv.describe(frames)[0] == "csv files /in/*.csv"
    assert csv.files_per_batch is None
    assert "maxFilesPerTrigger" not in frames.stream(session).plan


def test_inferred_columns_are_stored_at_the_first_start(checkpoint: Checkpoint) -> None:
    session = FakeSession(("read.format(csv)", schema(id="long", _corrupt_record="string")))
    source = 'type = "files"\npath = "/in/*.csv"'
    assert frames_of(source, session).schema == schema(id="long")
    assert session.actions == [
        "read.format(csv).options().option(header, true).option(inferSchema, true).load(/in/*.csv)"
    ]
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
        frames_of(
            'type = "files"\npath = "/in/*.avro"',
            FakeSession(("read.format(avro)", AnalysisException("no avro\nplan"))),
        )
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
    assert with_source(f'type = "files"\npath = "{path}"').sources["orders"].format == format_


def test_files_without_a_known_suffix_need_a_format() -> None:
    with pytest.raises(PipelineMistakes, match="has no known suffix"):
        with_source('type = "files"\npath = "/in/x"')
    with pytest.raises(PipelineMistakes) as caught:
        with_source('type = "files"\npath = "/in/x"\nformat = "xml"')
    assert "no known suffix" not in str(caught.value)
    assert with_source('type = "files"\npath = "/in/x"\nformat = "json"').sources["orders"].format == "json"
