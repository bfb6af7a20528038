"""Parquet files, exactly once: each micro-batch is a folder that appears with one rename.

    PATH/headgate_batch=IDENTITY-QUERY-00000012/part-….parquet

Readers of partitioned data sets (Spark, DuckDB, pandas, pyarrow) see the folder's name as a column, which tells which
batch wrote a row. A batch that is done again finds its folder and leaves it. Renames are atomic on local disks and
HDFS; on an object store without them a reader can see half of a batch for a moment, and Delta is the better choice.
`mode = "replace"` puts a table's rows in the place of the former ones.
"""

from typing import TYPE_CHECKING

from spark_udfs.pipeline.checks_sinks import BATCH_COLUMN
from spark_udfs.pipeline.counting import counted
from spark_udfs.pipeline.filesystem import Files, joined
from spark_udfs.pipeline.mistakes import PipelineError
from spark_udfs.pipeline.model import Mode, ParquetSink
from spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, REFUSED_AT_ONCE_MAX, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from spark_udfs.pipeline.checkpoints import BatchId

NAME_BYTES_MAX = 255
"""Of a file's name, on nearly every disk."""
ESCAPED = r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
"""What Spark writes with three characters in the name of a partition's folder."""
_REASON = "the partition's value cannot be the name of a folder"


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

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        if self._sink.mode is Mode.REPLACE:
            return self._replace(rows, batch)
        final = joined(self._sink.path, f"{BATCH_COLUMN}={batch.name}")
        if self._files.exists(final):
            return Written(0, repeated=True)
        # Names with an underscore in front are not data to any reader.
        temporary = joined(self._sink.path, f"_headgate_{batch.name}")
        rows, refused = self._parted(rows, batch)
        count = self._write(rows, temporary)
        if count:
            self._files.rename(temporary, final)
        else:
            self._files.delete(temporary)
        return Written(count, refused)

    def _parted(self, rows: "DataFrame", batch: "BatchId") -> "tuple[DataFrame, int]":
        """Without the rows whose partition cannot be the name of a folder: one of them would fail the whole batch."""
        from pyspark.sql import functions as f

        bad: Column | None = None
        for name in self._sink.partition_by:
            if rows.schema[name].dataType.typeName() not in {"string", "binary"}:
                continue
            text = f.col(f"`{name}`").cast("string")
            escaped = f.regexp_replace(text, ESCAPED, "%00")
            too_odd = text.contains("\0") | (f.octet_length(escaped) > NAME_BYTES_MAX - len(name.encode()) - 1)
            bad = too_odd if bad is None else bad | too_odd
        if bad is None or self._refused is None:
            return rows, 0
        odd = f.coalesce(bad, f.lit(False))
        row = f.to_json(f.struct(*(f.col(f"`{name}`") for name in rows.columns)))
        some = rows.where(odd).select(row).limit(REFUSED_AT_ONCE_MAX + 1)
        found = [(str(each[0]), _REASON) for each in some.toLocalIterator()]
        if found:
            self._refused(found, batch)
        return rows.where(~odd), len(found)

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
