"""Run a pipeline: once over the available rows, or until it is stopped. Restarts for new schema versions."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.driver.restarts import RESTARTS_MAX, is_new_version
from headgate.spark_udfs.pipeline.assembly import Outline, Writers, open_tables, outline, stage_path
from headgate.spark_udfs.pipeline.batch_gate import QueryStopping
from headgate.spark_udfs.pipeline.batches import BatchProcessor, Target
from headgate.spark_udfs.pipeline.checkpoints import Checkpoint, open_checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import Emit, Pipeline, WindowTransform
from headgate.spark_udfs.pipeline.queries import POLL_SECONDS, Running, start
from headgate.spark_udfs.pipeline.sinks.parquet import BATCH_COLUMN
from headgate.spark_udfs.pipeline.sources.source import PolledFrames, StreamFrames
from headgate.spark_udfs.pipeline.spark_errors import explained, naming
from headgate.spark_udfs.pipeline.tables import Table, TopicTable
from headgate.spark_udfs.pipeline.transforms import apply_transform, with_own_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAG_SECONDS = 1.0
"""Interval between lag updates."""

SESSION_SETTINGS = {
    # Spark's default type has no time zone, and other readers interpret it as local time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}

OnProgress = Callable[[], None]


class Runner:
    """Runs one pipeline in one Spark session."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, metrics: Metrics | None = None) -> None:
        # A separate session: the steps become temporary views with their own names.
        self._spark = spark.newSession()
        for name, value in SESSION_SETTINGS.items():
            self._spark.conf.set(name, value)
        self._pipeline = pipeline
        self.metrics = metrics or Metrics(pipeline.name)
        self._stop = threading.Event()

    def stop(self) -> None:
        """End `run` after the running micro-batches. Thread-safe and idempotent."""
        self._stop.set()

    def run(
        self,
        *,
        once: bool = False,
        on_progress: OnProgress = lambda: None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_progress` is called repeatedly while the pipeline runs. Raises `PipelineError`."""
        for _ in range(RESTARTS_MAX):
            execution = _Execution(self._spark, self._pipeline, self.metrics, self._stop, on_progress)
            try:
                execution.run(once=once)
                return
            except Exception as error:
                if not is_new_version(error):
                    raise explained(error) from error
                if self._stop.is_set():
                    return
                self.metrics.restarted()
                log("restarting to read with a new schema version")
            finally:
                execution.close()


class _Execution:
    """One run with one choice of reader schemas."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        metrics: Metrics,
        stop: threading.Event,
        on_progress: OnProgress,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._metrics = metrics
        self._stop = stop
        self._on_progress = on_progress
        self._running: list[Running] = []
        self._lag_at = 0.0
        self._table_versions: dict[str, list[object]] = {}

    def run(self, *, once: bool) -> None:
        pipeline, spark = self._pipeline, self._spark
        self._checkpoint: Checkpoint = open_checkpoint(Files(spark), pipeline)
        self._outline: Outline = outline(spark, pipeline, self._checkpoint)
        self._writers = Writers(spark, pipeline, self._checkpoint)
        self._writers.check(self._outline.analysis.schemas)
        topology = self._outline.topology
        self._metrics.declare([*topology.source_queries, *topology.tables], list(pipeline.sinks))
        self._tables: dict[str, Table] = open_tables(self._outline, pipeline, self._checkpoint)
        self._batches = BatchProcessor(pipeline, self._tables, self._writers.dead_letters, self._metrics)
        # Fill the tables before the first row of a stream is processed.
        self._finish([self._table_query(name, table, None) for name, table in self._topic_tables()])
        if self._stop.is_set():
            return
        self._write_tables()
        if once:
            self._run_once()
        else:
            self._run_until_stopped()

    def _streaming(self) -> list[str]:
        return [name for name in self._outline.topology.source_queries if name not in self._polled()]

    def _polled(self) -> dict[str, PolledFrames]:
        frames = {name: self._outline.frames[name] for name in self._outline.topology.source_queries}
        return {name: each for name, each in frames.items() if isinstance(each, PolledFrames)}

    def _run_once(self) -> None:
        self._finish([self._source_query(name, None) for name in self._streaming()])
        for name, frames in self._polled().items():
            if not self._stop.is_set():
                self._poll(name, frames)
        if not self._stop.is_set():
            self._finish([self._stateful_query(name, None) for name in self._outline.topology.stateful_queries])

    def _run_until_stopped(self) -> None:
        seconds = self._pipeline.trigger_seconds
        refresh_seconds = self._pipeline.refresh_seconds
        self._running += [self._table_query(name, table, refresh_seconds) for name, table in self._topic_tables()]
        self._running += [self._source_query(name, seconds) for name in self._streaming()]
        self._running += [self._stateful_query(name, seconds) for name in self._outline.topology.stateful_queries]
        polled = self._polled()
        poll_at = 0.0
        while not self._stop.is_set():
            self._observe()
            if time.monotonic() >= poll_at:
                for name, frames in polled.items():
                    self._poll(name, frames)
                polled = {name: frames for name, frames in polled.items() if not frames.is_one_pass}
                self._write_tables()
                poll_at = time.monotonic() + max(seconds, POLL_SECONDS)
            self._stop.wait(POLL_SECONDS)
        self.close()

    def close(self) -> None:
        """Stop every query after its running micro-batch."""
        for running in self._running:
            running.gate.close()
        for running in self._running:
            running.stop()
        self._running.clear()

    def _finish(self, queries: list[Running]) -> None:
        """Wait until the queries end, or until the pipeline is stopped."""
        self._running += queries
        while any(each.query.isActive for each in queries):
            if self._stop.is_set():
                self.close()
                return
            self._observe()
            time.sleep(POLL_SECONDS)
        self._lag_at = 0.0
        self._observe()
        self._running = [each for each in self._running if each not in queries]

    def _observe(self) -> None:
        """Raise the errors of the queries, and update the lag."""
        for running in self._running:
            error = running.failure()
            if error is not None and not isinstance(error, QueryStopping):
                if isinstance(error, PipelineError):
                    raise error
                with naming(f"source {running.source}" if running.source else f"transform {running.name}"):
                    raise error
        if time.monotonic() >= self._lag_at:
            self._lag_at = time.monotonic() + LAG_SECONDS
            for running in self._running:
                if running.source is not None:
                    lag = running.lag()
                    if lag is not None:
                        self._metrics.lag(running.source, lag)
        self._on_progress()

    def _topic_tables(self) -> list[tuple[str, TopicTable]]:
        return [(name, table) for name, table in self._tables.items() if isinstance(table, TopicTable)]

    def _table_query(self, name: str, table: TopicTable, seconds: float | None) -> Running:
        return self._start_source(name, f"{name}-{table.query}", [], seconds, table)

    def _source_query(self, name: str, seconds: float | None) -> Running:
        return self._start_source(name, name, self._targets(name), seconds)

    def _start_source(
        self, name: str, query: str, targets: list[Target], seconds: float | None, table: TopicTable | None = None
    ) -> Running:
        frames, source = self._outline.frames[name], self._pipeline.sources[name]
        assert isinstance(frames, StreamFrames)

        def work(rows: "DataFrame", number: int) -> None:
            batch = self._checkpoint.batch(query, number)
            self._batches.process_source(name, rows, frames.good, targets, source.on_poison, batch, table=table)

        with naming(f"source {name}"):
            frame = frames.stream(self._spark)
        return start(query, frame, self._checkpoint.query(query), work, source=name, seconds=seconds)

    def _targets(self, name: str) -> list[Target]:
        """The targets of a source query: its sinks, and the staged files of stateful queries."""
        query = self._outline.topology.source_queries[name]
        targets = self._sink_targets(query.sinks)
        for stateful in self._outline.topology.stateful_queries.values():
            for step in stateful.staged:
                if step in query.staged:
                    writer = self._writers.stage(stateful.step, step)
                    targets.append(Target(f"{stateful.step}/{step}", step, writer, counts=False))
        return targets

    def _sink_targets(self, sinks: tuple[str, ...]) -> list[Target]:
        return [Target(name, self._pipeline.sinks[name].input, self._writers.sinks[name]) for name in sinks]

    def _poll(self, name: str, frames: PolledFrames) -> None:
        """Process the available batches of a polled source."""
        source, targets = self._pipeline.sources[name], self._targets(name)
        for number, rows in frames.poll(self._spark, self._checkpoint):
            batch = self._checkpoint.batch(name, number)
            self._batches.process_source(name, rows, frames.good, targets, source.on_poison, batch)
            self._observe()
            if self._stop.is_set():
                return

    def _stateful_query(self, name: str, seconds: float | None) -> Running:
        query = self._outline.topology.stateful_queries[name]
        frames: dict[str, Any] = {step: self._staged(name, step) for step in query.staged}
        mode = "append"
        for step in query.transforms:
            transform = self._pipeline.transforms[step]
            frames[step] = apply_transform(transform, {each: frames[each] for each in transform.inputs}, self._spark)
            if isinstance(transform, WindowTransform) and transform.emit is Emit.CHANGES:
                mode = "update"
        targets = self._sink_targets(query.sinks)

        def work(rows: "DataFrame", number: int) -> None:
            kept = rows.persist()
            try:
                self._batches.write_targets(name, kept, targets, self._checkpoint.batch(name, number))
            finally:
                kept.unpersist()

        return start(name, frames[name], self._checkpoint.query(name), work, seconds=seconds, mode=mode)

    def _staged(self, query: str, step: str) -> "DataFrame":
        from pyspark.sql.types import StringType, StructField, StructType

        path = stage_path(self._checkpoint, query, step)
        self._checkpoint.files.make_folder(path)
        schema = StructType([*self._outline.analysis.schemas[step].fields, StructField(BATCH_COLUMN, StringType())])
        # Spark deletes committed files. The empty folders remain, so that a repeated batch is detected.
        reader = self._spark.readStream.schema(schema).option("cleanSource", "delete")
        return with_own_watermark(reader.parquet(path).drop(BATCH_COLUMN), self._pipeline.steps[step])

    def _write_tables(self) -> None:
        """Write the sinks of tables whose rows have changed."""
        for name in self._outline.topology.table_sinks:
            step = self._pipeline.sinks[name].input
            used = [each for each in self._tables if each in self._batches.above(step)]
            versions = [self._tables[each].version() for each in used]
            if versions == self._table_versions.get(name):
                continue
            number = int((self._checkpoint.read_json("cursors", f"sink-{name}") or {}).get("number", 0))
            frame = self._batches.frame(step, {}, self._spark)
            batch = self._checkpoint.batch(f"table-{name}", number)
            self._batches.write_targets(step, frame, self._sink_targets((name,)), batch)
            self._checkpoint.write_json("cursors", f"sink-{name}", {"number": number + 1})
            self._table_versions[name] = [self._tables[each].version() for each in used]
