"""A pipeline with fake sources, queries, sinks and time."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.spark_udfs.pipeline import run as running
from headgate.spark_udfs.pipeline.analysis import Analysis
from headgate.spark_udfs.pipeline.assembly import Outline
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.run import Runner
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.sources.source import PolledFrames, StreamFrames
from headgate.spark_udfs.pipeline.tables import TopicTable
from headgate.spark_udfs.pipeline.topology import build_topology
from tests.unit.spark_udfs.fake_spark import FakeFrame, FakeHadoop, FakeSession, schema

TEXT = """
checkpoint = "CHECKPOINT"
on_poison = "DROP"
trigger = "3 seconds"
refresh = "7 seconds"
[sources.orders]
type = "topic"
watermark = { column = "at", delay = "1 minute" }
[sources.people]
type = "topic"
read = "table"
[sources.prices]
type = "jdbc"
url = "sqlite:a.db"
table = "prices"
[transforms.counts]
type = "window"
from = "orders"
window = "tumbling"
time = "at"
size = "5 minutes"
select = { rows = "count(*)" }
emit = "EMIT"
[sinks.raw]
type = "console"
from = "orders"
[sinks.counted]
type = "console"
from = "counts"
[sinks.known]
type = "console"
from = "people"
[sinks.priced]
type = "console"
from = "prices"
"""
ROWS = schema(at="timestamp")


class FakeQuery:
    """A query that is active for a number of checks."""

    def __init__(self, checks: int = 2) -> None:
        self.checks = checks

    @property
    def isActive(self) -> bool:
        self.checks -= 1
        return self.checks >= 0


class FakeRunning:
    def __init__(self, name: str, source: str | None, query: FakeQuery, log: list[str]) -> None:
        self.name = name
        self.source = source
        self.query = query
        self.error: Exception | None = None
        self.lag_now: int | None = 5
        self.lags = 0
        self._log = log
        self.gate = SimpleNamespace(close=lambda: log.append(f"close {name}"))

    def failure(self) -> Exception | None:
        return self.error

    def lag(self) -> int | None:
        self.lags += 1
        return self.lag_now

    def stop(self) -> None:
        self._log.append(f"stop {self.name}")


class Streamed(StreamFrames):
    schema = ROWS

    def good(self, frame: Any) -> Any:
        return frame.where("reason IS NULL")

    def stream(self, spark: Any) -> Any:
        return spark.frame(ROWS, "stream", streaming=True)

    def open_table(self, checkpoint: Any, refresh_seconds: float) -> Any:
        files = checkpoint.files
        return TopicTable(files, checkpoint.table("people"), ROWS, (), _row)


def _row(rows: Any) -> Any:
    return rows


class Polled(PolledFrames):
    schema = ROWS

    def __init__(self, is_one_pass: bool = True) -> None:
        self.is_one_pass = is_one_pass
        self.polls = 0
        self.batches = 2

    def good(self, frame: Any) -> Any:
        return frame

    def poll(self, spark: Any, checkpoint: Any) -> Any:
        self.polls += 1
        for number in range(self.batches):
            yield number, spark.frame(ROWS, f"poll {number}")

    def open_table(self, checkpoint: Any, refresh_seconds: float) -> Any:
        raise NotImplementedError


class Harness:
    """One pipeline with fake sources, queries, sinks and time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, emit: str = "final") -> None:
        self.log: list[str] = []
        session: Any = FakeSession((".count()", 1))
        session.sparkContext = FakeHadoop()
        self.session: Any = session
        text = TEXT.replace("CHECKPOINT", str(folder / "state")).replace("EMIT", emit)
        self.pipeline = check(parse_toml(text, "shop.toml", folder, {}), {})
        self.polled = Polled()
        self.queries: dict[str, FakeRunning] = {}
        self.frames: dict[str, FakeFrame] = {}
        self.works: dict[str, Callable[[Any, int], None]] = {}
        self.checks = 2
        self.now = 100.0
        self.waits = 0
        self.on_wait: Callable[[], None] = lambda: None
        self.on_start: Callable[[FakeRunning], None] = lambda each: None
        monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(running, "start", self.start)
        monkeypatch.setattr(running, "outline", self.outline)
        monkeypatch.setattr("headgate.spark_udfs.pipeline.sinks.console.ConsoleWriter.write", self.write)
        self.runner = Runner(session, self.pipeline)
        self.runner._stop.wait = self.sleep  # type: ignore[method-assign,assignment]

    def sleep(self, seconds: float | None = None) -> bool:
        self.now += seconds or 0
        self.waits += 1
        assert self.waits < 1000
        self.on_wait()
        return False

    def outline(self, spark: Any, pipeline: Any, checkpoint: Any) -> Outline:
        self.log.append("outline")
        frames: Any = {"orders": Streamed(), "people": Streamed(), "prices": self.polled}
        schemas = dict.fromkeys(pipeline.steps, ROWS)
        return Outline(frames, Analysis(schemas, frozenset({"counts"})), build_topology(pipeline, {"counts"}))

    def start(
        self, name: str, frame: Any, checkpoint: str, work: Any, *, source: str | None = None, **options: Any
    ) -> Any:
        shown = " ".join(f"{key}={value}" for key, value in options.items())
        self.log.append(f"start {name.partition('-')[0]} {shown}")
        assert checkpoint.endswith(f"/queries/{name}")
        found = FakeRunning(name.partition("-")[0], source, FakeQuery(self.checks), self.log)
        self.queries[found.name], self.frames[found.name], self.works[found.name] = found, frame, work
        self.on_start(found)
        return found

    def write(self, rows: Any, batch: Any) -> Written:
        self.log.append(f"write {rows.plan} {batch.query} {batch.number}")
        return Written(1)

    def starts(self) -> list[str]:
        return [each for each in self.log if each.startswith("start")]

    def run(self, **options: Any) -> None:
        self.runner.run(**options)
