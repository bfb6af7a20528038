"""Parquet files, exactly once: each micro-batch is a folder that appears with one rename.

    PATH/headgate_batch=IDENTITY-QUERY-00000012/part-….parquet

Readers of partitioned data sets (Spark, DuckDB, pandas, pyarrow) see the folder's name as a column, which tells which
batch wrote a row. A batch that is done again finds its folder and leaves it. Renames are atomic on local disks and
HDFS; on an object store without them a reader can see half of a batch for a moment, and Delta is the better choice.
`mode = "replace"` puts a table's rows in the place of the former ones.
"""

from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checks.sinks import BATCH_COLUMN
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files, joined
from headgate.spark_udfs.pipeline.model import Mode, ParquetSink
from headgate.spark_udfs.pipeline.sinks.partitions import parted
from headgate.spark_udfs.pipeline.sinks.row_count import counted
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId


class ParquetWriter:
    guarantee = EXACTLY_ONCE

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
        # Names with an underscore in front are not data to any reader.
        temporary = joined(self._sink.path, f"_headgate_{batch.name}")
        rows, refused = parted(rows, self._sink.partition_by, self._refused, batch)
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
        observed, count = counted(rows)
        writer = observed.write.mode("overwrite").options(**dict(self._sink.options))
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        writer.parquet(folder)
        return count()
