"""Runs a pipeline: once through what is there, or until it is stopped; starting again when a new schema asks for it."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.driver.restarts import RESTARTS_MAX, is_new_version
from headgate.spark_udfs.pipeline.assembly import Outline, Writers, outline, stage_path, tables_of
from headgate.spark_udfs.pipeline.batches import Batches, Closed, Target
from headgate.spark_udfs.pipeline.checkpoints import Checkpoint, open_checkpoint
from headgate.spark_udfs.pipeline.checks.sinks import BATCH_COLUMN
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import Emit, Pipeline, Read, WindowTransform
from headgate.spark_udfs.pipeline.polling import Cursor, DatabaseFrames
from headgate.spark_udfs.pipeline.queries import POLL_SECONDS, Running, start
from headgate.spark_udfs.pipeline.sources import watermarked
from headgate.spark_udfs.pipeline.spark_errors import explained, naming
from headgate.spark_udfs.pipeline.tables import Table, TopicTable
from headgate.spark_udfs.pipeline.transforms import transformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAG_SECONDS = 1.0
"""Between two looks at the lag."""

SESSION_SETTINGS = {
    # The old default has no time zone, and others than Spark read it as local time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}

Watch = Callable[[], None]


class Runner:
    """One pipeline in one session."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, metrics: Metrics | None = None) -> None:
        # Views get the names of steps; a session of its own keeps them from those of others.
        self._spark = spark.newSession()
        for name, value in SESSION_SETTINGS.items():
            self._spark.conf.set(name, value)
        self._pipeline = pipeline
        self.metrics = metrics or Metrics(pipeline.name)
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends `run` after the micro-batches in flight. May be called from anywhere, more than once."""
        self._stop.set()

    def run(
        self, *, once: bool = False, watch: Watch = lambda: None, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """`watch` is called now and then while it runs. Raises `PipelineError`."""
        for _ in range(RESTARTS_MAX):
            round_ = _Round(self._spark, self._pipeline, self.metrics, self._stop, watch)
            try:
                round_.run(once=once)
                return
            except Exception as error:
                if not is_new_version(error):
                    raise explained(error) from error
                if self._stop.is_set():
                    return
                self.metrics.restarted()
                say("a new version of a schema has appeared: starting again to read with it")
            finally:
                round_.close()


class _Round:
    """From one choice of schemas to the next."""

    def __init__(
        self, spark: "SparkSession", pipeline: Pipeline, metrics: Metrics, stop: threading.Event, watch: Watch
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._metrics = metrics
        self._stop = stop
        self._watch = watch
        self._running: list[Running] = []
        self._lag_at = 0.0
        self._table_versions: dict[str, list[object]] = {}

    def run(self, *, once: bool) -> None:
        pipeline, spark = self._pipeline, self._spark
        self._checkpoint: Checkpoint = open_checkpoint(Files(spark), pipeline)
        self._outline: Outline = outline(spark, pipeline, self._checkpoint)
        writers = self._writers = Writers(spark, pipeline, self._checkpoint)
        writers.check(self._outline.analysis.schemas)
        shape = self._outline.shape
        self._metrics.declare([*shape.intakes, *shape.tables], list(pipeline.sinks))
        self._tables: dict[str, Table] = tables_of(self._outline, pipeline, self._checkpoint)
        self._batches = Batches(pipeline, self._tables, writers.letters, self._metrics)
        # A stream finds its tables filled, from its first row on.
        self._finish([self._table_query(name, None) for name in self._topic_tables()])
        if self._stop.is_set():
            return
        self._write_tables()
        if once:
            self._once()
        else:
            self._until_stopped()

    def _once(self) -> None:
        shape = self._outline.shape
        databases = [name for name in shape.intakes if isinstance(self._outline.frames[name], DatabaseFrames)]
        self._finish([self._intake(name, None) for name in shape.intakes if name not in databases])
        for name in databases:
            if not self._stop.is_set():
                self._poll(name)
        if not self._stop.is_set():
            self._finish([self._gathering(name, None) for name in shape.gatherings])

    def _until_stopped(self) -> None:
        shape, pipeline = self._outline.shape, self._pipeline
        seconds = pipeline.trigger_seconds
        databases = [name for name in shape.intakes if isinstance(self._outline.frames[name], DatabaseFrames)]
        self._running += [self._table_query(name, pipeline.refresh_seconds) for name in self._topic_tables()]
        self._running += [self._intake(name, seconds) for name in shape.intakes if name not in databases]
        self._running += [self._gathering(name, seconds) for name in shape.gatherings]
        passed: set[str] = set()
        poll_at = 0.0
        while not self._stop.is_set():
            self._look()
            if time.monotonic() >= poll_at:
                for name in databases:
                    if name not in passed:
                        self._poll(name)
                    if self._cursor_of(name) is None:
                        # Without a growing column there is nothing to tell new rows by: one pass is all.
                        passed.add(name)
                self._write_tables()
                poll_at = time.monotonic() + max(seconds, POLL_SECONDS)
            self._stop.wait(POLL_SECONDS)
        self.close()

    def close(self) -> None:
        """Each query after its micro-batch in flight."""
        for running in self._running:
            running.gate.close()
        for running in self._running:
            running.stop()
        self._running.clear()

    def _finish(self, queries: list[Running]) -> None:
        """Waits for queries that end by themselves, or for the stop."""
        self._running += queries
        while any(each.query.isActive for each in queries):
            if self._stop.is_set():
                self.close()
                return
            self._look()
            time.sleep(POLL_SECONDS)
        self._lag_at = 0.0
        self._look()
        self._running = [each for each in self._running if each not in queries]

    def _look(self) -> None:
        for running in self._running:
            error = running.failure()
            if error is not None and not isinstance(error, Closed):
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
        self._watch()

    def _topic_tables(self) -> list[str]:
        return [name for name, table in self._tables.items() if isinstance(table, TopicTable)]

    def _table_query(self, name: str, seconds: float | None) -> Running:
        table, frames, source = self._tables[name], self._outline.frames[name], self._pipeline.sources[name]
        assert isinstance(table, TopicTable)
        assert not isinstance(frames, DatabaseFrames)
        query = f"{name}-{table.query}"

        def work(rows: "DataFrame", number: int) -> None:
            batch = self._checkpoint.batch(query, number)
            self._batches.intake(name, rows, frames.good, (), source.on_poison, batch, table=table)

        with naming(f"source {name}"):
            frame = frames.stream(self._spark)
        return start(query, frame, self._checkpoint.query(query), work, source=name, seconds=seconds)

    def _targets(self, name: str) -> list[Target]:
        """What an intake feeds: its sinks, and the stages of gatherings."""
        intake = self._outline.shape.intakes[name]
        sinks = self._pipeline.sinks
        targets = [Target(sink, sinks[sink].input, self._writers.sinks[sink]) for sink in intake.sinks]
        for gathering in self._outline.shape.gatherings.values():
            for step in gathering.stages:
                if step in intake.stages:
                    writer = self._writers.stage(gathering.step, step)
                    targets.append(Target(f"{gathering.step}/{step}", step, writer, counts=False))
        return targets

    def _intake(self, name: str, seconds: float | None) -> Running:
        frames, source = self._outline.frames[name], self._pipeline.sources[name]
        assert not isinstance(frames, DatabaseFrames)
        assert source.read is Read.STREAM
        targets = self._targets(name)

        def work(rows: "DataFrame", number: int) -> None:
            batch = self._checkpoint.batch(name, number)
            self._batches.intake(name, rows, frames.good, targets, source.on_poison, batch)

        with naming(f"source {name}"):
            frame = frames.stream(self._spark)
        return start(name, frame, self._checkpoint.query(name), work, source=name, seconds=seconds)

    def _poll(self, name: str) -> None:
        """The batches of a database that are there now."""
        frames, source = self._outline.frames[name], self._pipeline.sources[name]
        assert isinstance(frames, DatabaseFrames)
        targets = self._targets(name)
        for number, rows in Cursor(self._checkpoint, frames.source).batches():
            batch = self._checkpoint.batch(name, number)
            decoded = frames.frame(self._spark, rows)
            self._batches.intake(name, decoded, frames.good, targets, source.on_poison, batch)
            self._look()
            if self._stop.is_set():
                return

    def _cursor_of(self, name: str) -> str | None:
        frames = self._outline.frames[name]
        return frames.source.incremental if isinstance(frames, DatabaseFrames) else None

    def _gathering(self, name: str, seconds: float | None) -> Running:
        gathering = self._outline.shape.gatherings[name]
        frames: dict[str, Any] = {step: self._staged(name, step) for step in gathering.stages}
        mode = "append"
        for step in gathering.inside:
            transform = self._pipeline.transforms[step]
            frames[step] = transformed(transform, {each: frames[each] for each in transform.inputs}, self._spark)
            if isinstance(transform, WindowTransform) and transform.emit is Emit.CHANGES:
                mode = "update"
        sinks = self._pipeline.sinks
        targets = [Target(sink, sinks[sink].input, self._writers.sinks[sink]) for sink in gathering.sinks]

        def work(rows: "DataFrame", number: int) -> None:
            kept = rows.persist()
            try:
                self._batches.outflow(name, kept, targets, self._checkpoint.batch(name, number))
            finally:
                kept.unpersist()

        return start(name, frames[name], self._checkpoint.query(name), work, seconds=seconds, mode=mode)

    def _staged(self, gathering: str, step: str) -> "DataFrame":
        from pyspark.sql.types import StringType, StructField, StructType

        path = stage_path(self._checkpoint, gathering, step)
        self._checkpoint.files.make_folder(path)
        schema = StructType([*self._outline.analysis.schemas[step].fields, StructField(BATCH_COLUMN, StringType())])
        # Files go when the query has noted their rows as done; the empty folders stay, and tell a batch done again.
        reader = self._spark.readStream.schema(schema).option("cleanSource", "delete")
        staged = reader.parquet(path).drop(BATCH_COLUMN)
        return watermarked(staged, self._pipeline.steps[step], step)

    def _write_tables(self) -> None:
        """Sinks that take tables, where these have changed."""
        for name in self._outline.shape.table_sinks:
            step = self._pipeline.sinks[name].input
            used = [each for each in self._tables if each in self._batches.above(step)]
            versions = [self._tables[each].version() for each in used]
            if versions == self._table_versions.get(name):
                continue
            number = int((self._checkpoint.read_json("cursors", f"sink-{name}") or {}).get("number", 0))
            frame = self._batches.frame(step, {}, self._spark)
            batch = self._checkpoint.batch(f"table-{name}", number)
            self._batches.outflow(step, frame, [Target(name, step, self._writers.sinks[name])], batch)
            self._checkpoint.write_json("cursors", f"sink-{name}", {"number": number + 1})
            self._table_versions[name] = [self._tables[each].version() for each in used]
