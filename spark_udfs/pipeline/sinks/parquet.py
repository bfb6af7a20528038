"""Parquet sink, exactly once: each micro-batch is a folder that appears with one rename.

    PATH/headgate_batch=IDENTITY-QUERY-00000012/part-….parquet

Readers of partitioned data sets (Spark, DuckDB, pandas, pyarrow) see the folder name as a column: the batch of a row.
A repeated batch finds its folder and writes nothing. A rename is atomic on local disks and HDFS. On an object store
without atomic rename a reader can see a partial batch for a moment; use Delta there. `mode = "replace"` replaces all
rows with those of a table.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files, joined
from headgate.spark_udfs.pipeline.model import Mode, Options
from headgate.spark_udfs.pipeline.parquet_columns import check_types
from headgate.spark_udfs.pipeline.sinks.partitions import refuse_invalid_partitions
from headgate.spark_udfs.pipeline.sinks.row_count import observe_count
from headgate.spark_udfs.pipeline.sinks.sink import DEAD_LETTERS, DeadLetterSink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

BATCH_COLUMN = "headgate_batch"
"""The partition column that contains the micro-batch of a row."""


@dataclass(frozen=True, slots=True)
class ParquetSink(DeadLetterSink):
    path: str
    partition_by: tuple[str, ...] = ()
    options: Options = field(default_factory=dict)
    mode: Mode = field(default=Mode.APPEND, kw_only=True)

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "ParquetSink":
        partition_by = table.texts("partition_by")
        if BATCH_COLUMN in partition_by:
            table.wrong("partition_by", f"{BATCH_COLUMN} is added by the sink")
        return cls(
            name,
            input_,
            path=fields.folder(table),
            mode=fields.write_mode(table, (Mode.APPEND, Mode.REPLACE)),
            partition_by=partition_by,
            options=table.options("options"),
            on_refused=fields.on_refused(table),
        )

    @classmethod
    def for_dead_letters(cls, table: "TableReader") -> "ParquetSink":
        return cls(DEAD_LETTERS, "", fields.folder(table))

    def describe(self) -> tuple[str, str]:
        return f"Parquet {self.path}, {self.mode}", EXACTLY_ONCE

    def open(self, context: SinkContext) -> "ParquetWriter":
        return ParquetWriter(self, context.files, context.refused_rows(self))

    @property
    def folder(self) -> str | None:
        return self.path

    def check_columns(self, schema: "StructType") -> None:
        check_types(f"sink {self.name}", schema, "remove it in a transform before the sink")


class ParquetWriter:
    def __init__(self, sink: ParquetSink, files: Files, refused: RefusedRows | None = None) -> None:
        self._sink = sink
        self._files = files
        self._refused = refused

    def check(self, schema: "StructType") -> None:
        if BATCH_COLUMN in schema.names:
            raise PipelineError(
                f"sink {self._sink.name}: the rows have a column {BATCH_COLUMN}, which the sink adds itself",
                advice="rename it in a transform",
            )
        for column in self._sink.partition_by:
            if column not in schema.names:
                raise PipelineError(
                    f"sink {self._sink.name}: there is no column {column} to partition by",
                    why=f"the rows have {', '.join(schema.names)}",
                )
        self._files.make_folder(self._sink.path)

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        if self._sink.mode is Mode.REPLACE:
            return self._replace(rows, batch)
        final = joined(self._sink.path, f"{BATCH_COLUMN}={batch.name}")
        if self._files.exists(final):
            return Written(0, repeated=True)
        # Readers ignore names that start with an underscore.
        temporary = joined(self._sink.path, f"_headgate_{batch.name}")
        rows, refused = refuse_invalid_partitions(rows, self._sink.partition_by, self._refused, batch)
        count = self._write(rows, temporary)
        if count:
            self._files.rename(temporary, final)
        else:
            self._files.delete(temporary)
        return Written(count, refused)

    def _replace(self, rows: "DataFrame", batch: "BatchId") -> Written:
        parent, _, name = self._sink.path.rstrip("/").rpartition("/")
        temporary, old = joined(parent, f"_{name}.{batch.identity[:8]}.new"), joined(parent, f"_{name}.old")
        count = self._write(rows, temporary)
        if self._files.exists(self._sink.path):
            self._files.delete(old)
            self._files.rename(self._sink.path, old)
        self._files.rename(temporary, self._sink.path)
        self._files.delete(old)
        return Written(count)

    def _write(self, rows: "DataFrame", folder: str) -> int:
        observed, count = observe_count(rows)
        writer = observed.write.mode("overwrite").options(**dict(self._sink.options))
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        writer.parquet(folder)
        return count()
