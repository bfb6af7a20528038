"""Start streaming queries, observe them, and stop them after the running micro-batch."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.batch_gate import BatchGate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

COMMIT_SECONDS_MAX = 20.0
"""Timeout for Spark to commit the last micro-batch when a query stops."""
POLL_SECONDS = 0.05


@dataclass(slots=True)
class Running:
    """A running query."""

    name: str
    source: str | None
    """The source whose lag the query reports."""
    query: "StreamingQuery"
    gate: BatchGate

    def failure(self) -> BaseException | None:
        """The error that ended the query. The original exception if known: Spark reports only its text."""
        error = self.query.exception()
        if error is None:
            return None
        return self.gate.error or error

    def lag(self) -> int | None:
        """Records that are not read yet; None if the source does not report it."""
        progress: Any = self.query.lastProgress
        if progress is None or not progress["sources"]:
            return None
        source = progress["sources"][0]
        return lag_of(source.get("endOffset"), source.get("latestOffset"))

    def stop(self) -> None:
        """Stop after the running micro-batch."""
        self.gate.close()
        while self.query.isActive and self.gate.busy:
            time.sleep(POLL_SECONDS)
        until = time.monotonic() + COMMIT_SECONDS_MAX
        while self.query.isActive and not self._committed() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        self.query.stop()

    def _committed(self) -> bool:
        """Whether Spark has committed the last batch. Otherwise the next start repeats it."""
        if self.gate.last < 0:
            return True
        progress: Any = self.query.lastProgress
        return progress is not None and int(progress["batchId"]) >= self.gate.last


def start(
    name: str,
    frame: "DataFrame",
    checkpoint: str,
    work: "Callable[[DataFrame, int], None]",
    *,
    source: str | None = None,
    seconds: float | None = None,
    mode: str = "append",
) -> Running:
    """Start a query. `seconds` is the trigger interval; None processes the available rows and ends."""
    gate = BatchGate()

    def each(rows: "DataFrame", number: int) -> None:
        gate.run(number, lambda: work(rows, number))

    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", checkpoint)
    timed = writer.trigger(availableNow=True) if seconds is None else writer.trigger(processingTime=_interval(seconds))
    return Running(name, source, timed.foreachBatch(each).start(), gate)


def _interval(seconds: float) -> str:
    return f"{round(seconds * 1000)} milliseconds"


def lag_of(end: object, latest: object) -> int | None:
    """The lag between two offset maps by topic and partition, as JSON or parsed."""
    ends, latests = _offsets(end), _offsets(latest)
    if ends is None or latests is None:
        return None
    return sum(max(offset - ends.get(place, 0), 0) for place, offset in latests.items())


def _offsets(given: Any) -> dict[tuple[str, str], int] | None:
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    found: dict[tuple[str, str], int] = {}
    for topic, partitions in parsed.items():
        if isinstance(partitions, dict):
            found |= {
                (str(topic), str(partition)): int(offset)
                for partition, offset in partitions.items()
                if isinstance(offset, int)
            }
    return found
