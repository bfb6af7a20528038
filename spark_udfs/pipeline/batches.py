"""Process one micro-batch: count rows, write poison to the dead letters, and good rows through transforms to sinks.

Rows are decoded once, because the batch is cached while it is written. After a failure the checkpoint does not move,
and the next start repeats the batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.analysis import checked_transform
from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.dead_letters import EXAMPLES_MAX, DeadLetterWriter, poison_failure
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.sinks.writer import Writer
from headgate.spark_udfs.pipeline.spark_errors import naming
from headgate.spark_udfs.pipeline.tables import Table
from headgate.spark_udfs.spec.policy import OnPoison

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW_BYTES_SHOWN = 16
"""Bytes of a bad payload in an error message."""


@dataclass(frozen=True, slots=True)
class Target:
    """A writer and the step whose rows it writes."""

    name: str
    step: str
    writer: Writer
    counts: bool = True
    """Whether the metrics count the rows. Staged rows do not count."""


class BatchProcessor:
    """Processes the micro-batches of all queries of one pipeline. Thread-safe."""

    def __init__(
        self, pipeline: Pipeline, tables: Mapping[str, Table], dead_letters: DeadLetterWriter, metrics: Metrics
    ) -> None:
        self._pipeline = pipeline
        self._graph = Graph(pipeline)
        self._tables = tables
        self._dead_letters = dead_letters
        self._metrics = metrics

    def process_source(
        self,
        source: str,
        decoded: "DataFrame",
        good_of: "Callable[[DataFrame], DataFrame]",
        targets: Sequence[Target],
        policy: OnPoison,
        batch: BatchId,
        *,
        table: Writer | None = None,
    ) -> None:
        """Process rows of a source. With `table` they update a lookup table: a null value is a deletion, not poison."""
        if "reason" not in decoded.columns:
            self._process_raw(source, decoded, good_of, targets, batch)
            return
        if table is not None:
            decoded = _without_tombstones(decoded)
        kept = decoded.persist()
        try:
            counts = {each["reason"]: int(each["count"]) for each in kept.groupBy("reason").count().collect()}
            good = counts.pop(None, 0)
            if counts and policy is OnPoison.FAIL:
                raise poison_failure(source, sum(counts.values()), _examples(kept))
            if counts and policy is OnPoison.DEAD_LETTER:
                with naming("dead_letters"):
                    self._dead_letters.write(kept, source, batch)
            if good and table is not None:
                table.write(kept.where("reason IS NULL"), batch)
            elif good:
                self.write_targets(source, good_of(kept), targets, batch)
        finally:
            kept.unpersist()
        self._metrics.batch(source, good, counts)

    def _process_raw(
        self,
        source: str,
        rows: "DataFrame",
        good_of: "Callable[[DataFrame], DataFrame]",
        targets: Sequence[Target],
        batch: BatchId,
    ) -> None:
        """Process rows that are not decoded, so they cannot be poison."""
        kept = rows.persist()
        try:
            count = kept.count()
            if count:
                self.write_targets(source, good_of(kept), targets, batch)
        finally:
            kept.unpersist()
        self._metrics.batch(source, count, {})

    def write_targets(self, step: str, rows: "DataFrame", targets: Sequence[Target], batch: BatchId) -> None:
        """Apply the transforms after a step, and write the results."""
        frames: dict[str, DataFrame] = {step: rows}
        for target in targets:
            frame = self.frame(target.step, frames, rows.sparkSession)
            with naming(f"{'sink' if target.counts else 'stage'} {target.name}"):
                written = target.writer.write(frame, batch)
            if target.counts:
                self._metrics.written(target.name, written.rows, written.refused, repeated=written.repeated)

    def above(self, step: str) -> list[str]:
        return self._graph.above(step)

    def frame(self, name: str, frames: "dict[str, DataFrame]", spark: "SparkSession") -> "DataFrame":
        """The rows of a step, computed from known DataFrames and tables."""
        if name in frames:
            return frames[name]
        if name in self._tables:
            frames[name] = self._tables[name].frame(spark)
            return frames[name]
        transform = self._pipeline.transforms[name]
        inputs = {each: self.frame(each, frames, spark) for each in transform.inputs}
        frames[name] = checked_transform(transform, inputs, spark)
        return frames[name]


def _without_tombstones(decoded: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    tombstone = (f.col("reason") == "NULL") & f.col("key").isNotNull()
    return decoded.withColumn("reason", f.when(~tombstone, f.col("reason")))


def _examples(decoded: "DataFrame") -> list[tuple[str, str]]:
    from pyspark.sql import functions as f

    names = [name for name in ("topic", "partition", "offset") if name in decoded.columns]
    bad = decoded.where("reason IS NOT NULL").select("reason", *names, f.hex(f.substring("raw", 1, RAW_BYTES_SHOWN)))
    found = []
    for row in bad.limit(EXAMPLES_MAX).collect():
        reason, *place, raw = row
        found.append((str(reason), " ".join([*(str(each) for each in place), f"bytes {raw or 'none'}"])))
    return found
