"""Lookup tables: the latest value per key of a topic, or the current content of files or of a database query.

The table of a topic is stored as Parquet. Each micro-batch of its query writes a new generation: the last record of
each key, without keys whose last record is a tombstone. A lookup uses the newest generation at the start of its
micro-batch. The rows depend on the reader schema, so each schema has its own table, read from the start of the topic.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headgate.spark_udfs.pipeline.filesystem import Files, joined
from headgate.spark_udfs.pipeline.sinks.writer import Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

GENERATIONS_KEPT = 3
"""The newest generation, and those that a running micro-batch may still read."""

_KEY, _PARTITION, _OFFSET, _TIME, _IS_NEW = "__key", "__partition", "__offset", "__time", "__is_new"


class Table(Protocol):
    def frame(self, spark: "SparkSession") -> "DataFrame":
        """The current rows."""
        ...

    def version(self) -> object:
        """A value that changes when the rows may have changed."""
        ...


class TopicTable:
    """The table of one topic, and the writer of its generations."""

    def __init__(
        self,
        files: Files,
        folder: str,
        schema: "StructType",
        key: tuple[str, ...],
        row_of: "Callable[[DataFrame], Column]",
    ) -> None:
        self._files = files
        self._schema = schema
        self._row_of = row_of
        """The columns of `schema` as one struct, from decoded rows of the topic."""
        self._key = key
        self._folder = joined(folder, schema_name(schema, key))
        self._lock = threading.Lock()

    @property
    def query(self) -> str:
        """The name of the query, different for each schema."""
        return self._folder.rpartition("/")[2]

    def check(self, schema: "StructType") -> None:
        """Any columns are accepted."""

    def version(self) -> object:
        return self._newest()

    def frame(self, spark: "SparkSession") -> "DataFrame":
        rows = self._rows(spark)
        return spark.createDataFrame([], self._schema) if rows is None else rows.select("value.*")

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        """`rows` are decoded rows of the topic: value, reason and position."""
        from pyspark.sql import functions as f

        with self._lock:
            newest = self._newest()
            if newest is not None and newest >= batch.number:
                return Written(0, repeated=True)
            row = self._row_of(rows)
            key = f.struct(*(row.getField(name).alias(name) for name in self._key)) if self._key else f.col("key")
            new = rows.select(
                key.alias(_KEY),
                f.col("partition").alias(_PARTITION),
                f.col("offset").alias(_OFFSET),
                f.col("timestamp").alias(_TIME),
                row.alias("value"),
            )
            new = new.withColumn(_IS_NEW, f.lit(True))
            old = self._rows(rows.sparkSession)
            both = new if old is None else old.withColumn(_IS_NEW, f.lit(False)).unionByName(new)
            record = f.struct(_KEY, _PARTITION, _OFFSET, _TIME, "value")
            # Within a partition the later batch wins, regardless of offsets: the topic may have been recreated.
            # Within a batch the higher offset wins. If a key has moved to another partition, the later timestamp wins.
            latest = f.struct(_IS_NEW, _OFFSET)
            by_partition = both.groupBy(_KEY, _PARTITION).agg(f.max_by(record, latest).alias("last"))
            newest_first = f.struct(f.col(f"last.{_TIME}"), f.col(f"last.{_OFFSET}"))
            last = by_partition.groupBy(_KEY).agg(f.max_by("last", newest_first).alias("last"))
            kept = last.select("last.*").where("value IS NOT NULL")
            temporary = joined(self._folder, f"_writing_{batch.number:012d}")
            kept.write.mode("overwrite").parquet(temporary)
            self._files.rename(temporary, self._generation(batch.number))
            for number in self._generations()[:-GENERATIONS_KEPT]:
                self._files.delete(self._generation(number))
        return Written(0)

    def _rows(self, spark: "SparkSession") -> "DataFrame | None":
        from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

        newest = self._newest()
        if newest is None:
            return None
        key = StructType([self._schema[name] for name in self._key]) if self._key else BinaryType()
        schema = StructType(
            [
                StructField(_KEY, key),
                StructField(_PARTITION, IntegerType()),
                StructField(_OFFSET, LongType()),
                StructField(_TIME, TimestampType()),
                StructField("value", self._schema),
            ]
        )
        return spark.read.schema(schema).parquet(self._generation(newest))

    def _generation(self, number: int) -> str:
        return joined(self._folder, f"generation_{number:012d}")

    def _generations(self) -> list[int]:
        names = self._files.names(self._folder)
        return sorted(int(name.rpartition("_")[2]) for name in names if name.startswith("generation_"))

    def _newest(self) -> int | None:
        generations = self._generations()
        return generations[-1] if generations else None


def schema_name(schema: "StructType", key: tuple[str, ...]) -> str:
    """A short name, different for each schema and key."""
    return hashlib.sha256(f"{schema.json()}{key}".encode()).hexdigest()[:12]


@dataclass(slots=True)
class CachedTable:
    """Rows of files or of a database, read again when they are older than `seconds`."""

    read: "Callable[[SparkSession], DataFrame]"
    seconds: float
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read_at: float | None = None
    _number: int = 0
    _frame: "DataFrame | None" = None

    def frame(self, spark: "SparkSession") -> "DataFrame":
        with self._lock:
            self._refresh()
            if self._frame is None or self._read_at is None:
                self._frame = self.read(spark)
                self._read_at = self.clock()
                self._number += 1
            return self._frame

    def version(self) -> object:
        with self._lock:
            self._refresh()
            return self._number if self._frame is not None else self._number + 1

    def _refresh(self) -> None:
        if self._read_at is not None and self.clock() - self._read_at >= self.seconds:
            self._frame = None
