"""Puts a checked pipeline together for a run: frames of its sources, writers of its sinks, the shape of its queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.analysis import Analysis, analyse
from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.dead_letters import Letters
from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean
from headgate.spark_udfs.pipeline.model import (
    ConsoleSink,
    DeltaSink,
    FilesSource,
    FunctionSink,
    JdbcSink,
    OnPoison,
    ParquetSink,
    Pipeline,
    Read,
    Sink,
    TableLetters,
    TopicLetters,
    TopicSource,
)
from headgate.spark_udfs.pipeline.parquet_columns import check_parquet_columns
from headgate.spark_udfs.pipeline.polling import DatabaseFrames, database_frames
from headgate.spark_udfs.pipeline.sinks.console import ConsoleWriter
from headgate.spark_udfs.pipeline.sinks.delta import DeltaWriter
from headgate.spark_udfs.pipeline.sinks.function import FunctionWriter
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcWriter
from headgate.spark_udfs.pipeline.sinks.parquet import ParquetWriter
from headgate.spark_udfs.pipeline.sinks.topic import TopicWriter
from headgate.spark_udfs.pipeline.sinks.writer import RefusedRows, Writer
from headgate.spark_udfs.pipeline.sources import FileFrames, TopicFrames, file_frames, topic_frames, topic_schema
from headgate.spark_udfs.pipeline.spark_errors import naming
from headgate.spark_udfs.pipeline.tables import ReadTable, Table, TopicTable
from headgate.spark_udfs.pipeline.topology import Shape, shape_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Frames = TopicFrames | FileFrames | DatabaseFrames


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known without a checkpoint: enough for a plan."""

    frames: Mapping[str, Frames]
    analysis: Analysis
    shape: Shape


def outline(spark: "SparkSession", pipeline: Pipeline, checkpoint: Checkpoint | None) -> Outline:
    """Asks the registry, files and databases for columns, and Spark for what the transforms make of them. Raises
    `PipelineError`."""
    frames: dict[str, Frames] = {}
    schemas: dict[str, StructType] = {}
    for name, source in pipeline.sources.items():
        with naming(f"source {name}"):
            if isinstance(source, TopicSource):
                topic = frames[name] = topic_frames(pipeline, source)
                schemas[name] = topic_schema(topic)
            elif isinstance(source, FilesSource):
                files = frames[name] = file_frames(spark, source, checkpoint)
                schemas[name] = files.schema
            else:
                database = frames[name] = database_frames(source)
                schemas[name] = database.schema
    analysis = analyse(spark, pipeline, schemas)
    shape = shape_of(pipeline, analysis.stateful)
    is_case_sensitive = spark.conf.get("spark.sql.caseSensitive") == "true"
    check_parquet_columns(pipeline, shape, analysis.schemas, is_case_sensitive=is_case_sensitive)
    return Outline(frames, analysis, shape)


def tables_of(outline_: Outline, pipeline: Pipeline, checkpoint: Checkpoint) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for name in outline_.shape.tables:
        frames, source = outline_.frames[name], pipeline.sources[name]
        if isinstance(frames, TopicFrames):
            key = frames.source.key
            schema = outline_.analysis.schemas[name]
            _require_fields(name, key, schema.names)
            found[name] = TopicTable(checkpoint.files, checkpoint.table(name), schema, key, frames.row)
        else:
            assert source.read is Read.TABLE
            found[name] = ReadTable(frames.table, pipeline.refresh_seconds)
    return found


class Writers:
    """The sinks of one run. A row that a sink refuses goes where its policy says."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, checkpoint: Checkpoint) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        place: TopicLetters | Writer | None = None
        if isinstance(pipeline.dead_letters, TopicLetters):
            place = pipeline.dead_letters
        elif isinstance(pipeline.dead_letters, TableLetters):
            place = self._writer(pipeline.dead_letters.sink)
        self.letters = Letters(place, pipeline.kafka, pipeline.name)
        self.sinks = {name: self._writer(sink) for name, sink in pipeline.sinks.items()}

    def stage(self, gathering: str, step: str) -> ParquetWriter:
        """Rows on their way from an intake to a gathering."""
        return ParquetWriter(
            ParquetSink(step, step, stage_path(self._checkpoint, gathering, step)), self._checkpoint.files
        )

    def check(self, schemas: "Mapping[str, StructType]") -> None:
        """Raises `PipelineError`."""
        with naming("dead_letters"):
            self.letters.check(self._spark)
        for name, writer in self.sinks.items():
            schema = schemas[self._pipeline.sinks[name].input]
            with naming(f"sink {name}"):
                if not isinstance(self._pipeline.sinks[name], (ConsoleSink, FunctionSink)):
                    _require_distinct(schema.names)
                writer.check(schema)

    def _writer(self, sink: Sink) -> Writer:
        if isinstance(sink, ParquetSink):
            return ParquetWriter(sink, self._checkpoint.files, self._refusing(sink.name, sink.on_refused))
        if isinstance(sink, DeltaSink):
            return DeltaWriter(sink, self._spark, self._refusing(sink.name, sink.on_refused))
        if isinstance(sink, JdbcSink):
            return JdbcWriter(sink, self._refusing(sink.name, sink.on_refused))
        if isinstance(sink, FunctionSink):
            return FunctionWriter(sink, self._pipeline.folder)
        if isinstance(sink, ConsoleSink):
            return ConsoleWriter(sink)
        refusing = self._refusing(sink.name, sink.on_refused)
        return TopicWriter(sink, self._pipeline.kafka, self._pipeline.registry, refusing)

    def _refusing(self, sink: str, policy: OnPoison) -> RefusedRows:
        def refuse(rows: list[tuple[str, str]], batch: BatchId) -> None:
            self.letters.refuse(self._spark, policy, sink, rows, batch)

        return refuse


def _require_fields(source: str, key: Sequence[str], names: Sequence[str]) -> None:
    """Raises `PipelineError`."""
    for field in key:
        if field not in names:
            raise PipelineError(
                f"source {source}: there is no field {field} to tell rows by{did_you_mean(field, names)}",
                why=f"the values have {', '.join(names)}",
            )


def _require_distinct(names: Sequence[str]) -> None:
    """As Spark compares them. Raises `PipelineError`."""
    lower = [name.lower() for name in names]
    twice = [name for name in names if lower.count(name.lower()) > 1]
    if twice:
        raise PipelineError(
            f"there are two columns {twice[-1]}",
            why=f"the rows have {', '.join(names)}",
            advice="give one of them another name in the transform: SELECT a.id, b.id AS b_id",
        )


def stage_path(checkpoint: Checkpoint, gathering: str, step: str) -> str:
    return f"{checkpoint.staged(gathering)}/{step}"
