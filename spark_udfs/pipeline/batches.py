"""What happens to one micro-batch: counted, poison to the dead letters, good rows through the transforms to the sinks.

Rows are decoded once: the batch is kept while its parts are written. It counts as done when all of it is written; until
then a failure leaves the checkpoint where it was, and the batch is done again.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.analysis import analysed
from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.dead_letters import EXAMPLES_MAX, Letters, failure
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import OnPoison, Pipeline
from headgate.spark_udfs.pipeline.sinks.writer import Writer
from headgate.spark_udfs.pipeline.spark_errors import naming
from headgate.spark_udfs.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW_BYTES_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Target:
    """A sink (or a stage) and the step whose rows it takes."""

    name: str
    step: str
    writer: Writer
    counts: bool = True
    """Stages are the pipeline's own matter."""


class Batches:
    """Does micro-batches for every query of one pipeline. Safe to share between threads."""

    def __init__(self, pipeline: Pipeline, tables: Mapping[str, Table], letters: Letters, metrics: Metrics) -> None:
        self._pipeline = pipeline
        self._graph = Graph(pipeline)
        self._tables = tables
        self._letters = letters
        self._metrics = metrics

    def intake(
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
        """A source's rows. With `table`, they are the rows of a table: nulls delete, and are no poison."""
        if "reason" not in decoded.columns:
            self._plain_intake(source, decoded, good_of, targets, batch)
            return
        if table is not None:
            decoded = _without_tombstones(decoded)
        kept = decoded.persist()
        try:
            counts = {each["reason"]: int(each["count"]) for each in kept.groupBy("reason").count().collect()}
            good = counts.pop(None, 0)
            if counts and policy is OnPoison.FAIL:
                raise failure(source, sum(counts.values()), _examples(kept))
            if counts and policy is OnPoison.DEAD_LETTER:
                with naming("dead_letters"):
                    self._letters.write(kept, source, batch)
            if good and table is not None:
                table.write(kept.where("reason IS NULL"), batch)
            elif good:
                self.outflow(source, good_of(kept), targets, batch)
        finally:
            kept.unpersist()
        self._metrics.batch(source, good, counts)

    def _plain_intake(
        self,
        source: str,
        rows: "DataFrame",
        good_of: "Callable[[DataFrame], DataFrame]",
        targets: Sequence[Target],
        batch: BatchId,
    ) -> None:
        """Rows that cannot be bad."""
        kept = rows.persist()
        try:
            count = kept.count()
            if count:
                self.outflow(source, good_of(kept), targets, batch)
        finally:
            kept.unpersist()
        self._metrics.batch(source, count, {})

    def outflow(self, step: str, rows: "DataFrame", targets: Sequence[Target], batch: BatchId) -> None:
        """The rows of a step, through what follows it, to the targets."""
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
        """A step's rows, made of those that are known and of tables."""
        if name in frames:
            return frames[name]
        if name in self._tables:
            frames[name] = self._tables[name].frame(spark)
            return frames[name]
        transform = self._pipeline.transforms[name]
        inputs = {each: self.frame(each, frames, spark) for each in transform.inputs}
        frames[name] = analysed(transform, inputs, spark)
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


class Gate:
    """Lets micro-batches through one query, and tells whether one is under way; once closed, none begins."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._closed = False
        self.last: int = -1
        """The number of the last batch that was done."""
        self.error: BaseException | None = None

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    @property
    def busy(self) -> bool:
        return self._busy

    def run(self, number: int, work: Callable[[], None]) -> None:
        """Raises `Closed` where the query is being stopped, and what `work` raises."""
        with self._condition:
            if self._closed:
                raise Closed(f"batch {number} was not begun: the pipeline is stopping")
            self._busy = True
        try:
            work()
            self.last = number
        except BaseException as error:
            self.error = error
            raise
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()


class Closed(Exception):
    """The pipeline is stopping: the batch is left for the next run."""
