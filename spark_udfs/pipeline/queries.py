"""The streaming queries of one run: starts them, watches them, stops each after the micro-batch in flight."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.batches import Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

COMMIT_SECONDS_MAX = 20.0
"""After a micro-batch's work Spark notes it as done; how long that is waited for when stopping."""
POLL_SECONDS = 0.05


@dataclass(slots=True)
class Running:
    """A query under way."""

    name: str
    source: str | None
    """The source that it reads, for its lag."""
    query: "StreamingQuery"
    gate: Gate

    def failure(self) -> BaseException | None:
        """What ended it: our own error where there is one, since Spark hands on its text only."""
        error = self.query.exception()
        if error is None:
            return None
        return self.gate.error or error

    def lag(self) -> int | None:
        """Records between what is read and what is there; None where the source does not tell."""
        progress: Any = self.query.lastProgress
        if progress is None or not progress["sources"]:
            return None
        source = progress["sources"][0]
        return lag_of(source.get("endOffset"), source.get("latestOffset"))

    def stop(self) -> None:
        """After the micro-batch in flight, if there is one."""
        self.gate.close()
        while self.query.isActive and self.gate.busy:
            time.sleep(POLL_SECONDS)
        until = time.monotonic() + COMMIT_SECONDS_MAX
        while self.query.isActive and not self._committed() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        self.query.stop()

    def _committed(self) -> bool:
        """Whether Spark has noted the last batch as done; stopped before that, it would only be done again."""
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
    """`seconds` between micro-batches; None reads what is there, and ends."""
    gate = Gate()

    def each(rows: "DataFrame", number: int) -> None:
        gate.run(number, lambda: work(rows, number))

    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", checkpoint)
    timed = writer.trigger(availableNow=True) if seconds is None else writer.trigger(processingTime=_interval(seconds))
    return Running(name, source, timed.foreachBatch(each).start(), gate)


def _interval(seconds: float) -> str:
    return f"{round(seconds * 1000)} milliseconds"


def lag_of(end: object, latest: object) -> int | None:
    """Both are offsets by topic and partition, as a text or parsed."""
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
