"""Prepare a validated pipeline for a run: DataFrames of the sources, writers of the sinks, the streaming queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.analysis import Analysis, analyze
from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.dead_letters import DeadLetterWriter
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.parquet_columns import check_stored_steps
from headgate.spark_udfs.pipeline.sinks.parquet import ParquetSink, ParquetWriter
from headgate.spark_udfs.pipeline.sinks.sink import Sink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import RefusedRows
from headgate.spark_udfs.pipeline.sources.source import SourceContext, SourceFrames
from headgate.spark_udfs.pipeline.spark_errors import naming
from headgate.spark_udfs.pipeline.tables import Table
from headgate.spark_udfs.pipeline.topology import Topology, build_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Outline:
    """The facts that need no checkpoint: enough for a plan."""

    frames: Mapping[str, SourceFrames]
    analysis: Analysis
    topology: Topology


def outline(spark: "SparkSession", pipeline: Pipeline, checkpoint: Checkpoint | None) -> Outline:
    """Find the columns of the sources, and let Spark analyze the transforms. Raises `PipelineError`."""
    context = SourceContext(spark, pipeline, checkpoint)
    frames: dict[str, SourceFrames] = {}
    for name, source in pipeline.sources.items():
        with naming(f"source {name}"):
            frames[name] = source.open(context)
    analysis = analyze(spark, pipeline, {name: each.schema for name, each in frames.items()})
    topology = build_topology(pipeline, analysis.stateful)
    for sink in pipeline.sinks.values():
        sink.check_columns(analysis.schemas[sink.input])
    is_case_sensitive = spark.conf.get("spark.sql.caseSensitive") == "true"
    check_stored_steps(topology, analysis.schemas, is_case_sensitive=is_case_sensitive)
    return Outline(frames, analysis, topology)


def open_tables(outline_: Outline, pipeline: Pipeline, checkpoint: Checkpoint) -> dict[str, Table]:
    return {
        name: outline_.frames[name].open_table(checkpoint, pipeline.refresh_seconds)
        for name in outline_.topology.tables
    }


class Writers:
    """The writers of one run."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, checkpoint: Checkpoint) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        context = SinkContext(spark, pipeline, checkpoint.files, self._refused_rows)
        letters = pipeline.dead_letters
        self.dead_letters = DeadLetterWriter(None if letters is None else letters.open(context), pipeline.name)
        self.sinks = {name: sink.open(context) for name, sink in pipeline.sinks.items()}

    def stage(self, query: str, step: str) -> ParquetWriter:
        """The writer of rows that a source query stages for a stateful query."""
        sink = ParquetSink(step, step, stage_path(self._checkpoint, query, step))
        return ParquetWriter(sink, self._checkpoint.files)

    def check(self, schemas: "Mapping[str, StructType]") -> None:
        """Raises `PipelineError`."""
        with naming("dead_letters"):
            self.dead_letters.check()
        for name, writer in self.sinks.items():
            sink = self._pipeline.sinks[name]
            schema = schemas[sink.input]
            with naming(f"sink {name}"):
                if sink.requires_distinct_columns:
                    _require_distinct(schema.names)
                writer.check(schema)

    def _refused_rows(self, sink: Sink) -> RefusedRows:
        def refuse(rows: list[tuple[str, str]], batch: BatchId) -> None:
            self.dead_letters.refuse(self._spark, sink, rows, batch)

        return refuse


def _require_distinct(names: Sequence[str]) -> None:
    """Column names must differ in more than case, as in Spark. Raises `PipelineError`."""
    lower = [name.lower() for name in names]
    twice = [name for name in names if lower.count(name.lower()) > 1]
    if twice:
        raise PipelineError(
            f"there are two columns {twice[-1]}",
            why=f"the rows have {', '.join(names)}",
            advice="rename one of them in the transform: SELECT a.id, b.id AS b_id",
        )


def stage_path(checkpoint: Checkpoint, query: str, step: str) -> str:
    return f"{checkpoint.staged(query)}/{step}"
