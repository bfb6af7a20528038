"""Metrics of a pipeline as JSON and for Prometheus: rows read, good, poison by reason, written, lag and rate.

`read = good + poison` always holds for every source, because a batch is counted as a whole after it is written.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

RATE_SECONDS = 30.0
"""The time window of the row rate."""


@dataclass(slots=True)
class SourceCounts:
    read: int = 0
    good: int = 0
    poison: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    lag: int | None = None


@dataclass(slots=True)
class SinkCounts:
    rows: int = 0
    refused: int = 0
    repeated: int = 0
    """Batches that an earlier attempt had written."""


class Metrics:
    """The counters of one run. Thread-safe."""

    def __init__(self, pipeline: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.pipeline = pipeline
        self._clock = clock
        self._lock = threading.Lock()
        self._started = clock()
        self._sources: dict[str, SourceCounts] = {}
        self._sinks: dict[str, SinkCounts] = {}
        self._recent: list[tuple[float, int]] = []
        self._restarts = 0

    def declare(self, sources: list[str], sinks: list[str]) -> None:
        """Report counters as 0 before the first batch."""
        with self._lock:
            for name in sources:
                self._sources.setdefault(name, SourceCounts())
            for name in sinks:
                self._sinks.setdefault(name, SinkCounts())

    def batch(self, source: str, good: int, poison: Mapping[str, int]) -> None:
        with self._lock:
            counts = self._sources.setdefault(source, SourceCounts())
            read = good + sum(poison.values())
            counts.read += read
            counts.good += good
            counts.batches += 1
            for reason, rows in poison.items():
                counts.poison[reason] = counts.poison.get(reason, 0) + rows
            self._recent.append((self._clock(), read))

    def written(self, sink: str, rows: int, refused: int, *, repeated: bool) -> None:
        with self._lock:
            counts = self._sinks.setdefault(sink, SinkCounts())
            counts.rows += rows
            counts.refused += refused
            counts.repeated += repeated

    def lag(self, source: str, records: int | None) -> None:
        with self._lock:
            self._sources.setdefault(source, SourceCounts()).lag = records

    def restarted(self) -> None:
        with self._lock:
            self._restarts += 1

    def document(self) -> dict[str, Any]:
        """All metrics as a JSON document."""
        with self._lock:
            now = self._clock()
            self._recent = [each for each in self._recent if each[0] > now - RATE_SECONDS]
            span = min(max(now - self._started, 0.001), RATE_SECONDS)
            sources = {
                name: {
                    "read": each.read,
                    "good": each.good,
                    "poison": sum(each.poison.values()),
                    "poison_by_reason": dict(sorted(each.poison.items())),
                    "batches": each.batches,
                    "lag": each.lag,
                }
                for name, each in self._sources.items()
            }
            lags = [each.lag for each in self._sources.values() if each.lag is not None]
            return {
                "pipeline": self.pipeline,
                "seconds": round(now - self._started, 3),
                "read": sum(each.read for each in self._sources.values()),
                "good": sum(each.good for each in self._sources.values()),
                "poison": sum(sum(each.poison.values()) for each in self._sources.values()),
                "poison_by_reason": self._reasons(),
                "rows_per_second": round(sum(rows for _, rows in self._recent) / span, 1),
                "lag": sum(lags) if lags else None,
                "restarts": self._restarts,
                "sources": sources,
                "sinks": {
                    name: {"rows": each.rows, "refused": each.refused, "repeated_batches": each.repeated}
                    for name, each in self._sinks.items()
                },
            }

    def _reasons(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for source in self._sources.values():
            for reason, rows in source.poison.items():
                total[reason] = total.get(reason, 0) + rows
        return dict(sorted(total.items()))

    def write_json(self, file: Path) -> None:
        """Atomic replace: write a temporary file and rename it."""
        temporary = file.with_name(f".{file.name}.new")
        temporary.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")
        temporary.replace(file)


_PREFIX = "headgate_pipeline_"
_COUNTERS = {
    "source": {
        "read": ("rows_read", "Rows read."),
        "good": ("rows_good", "Rows decoded."),
        "batches": ("batches", "Micro-batches."),
    },
    "sink": {"rows": ("rows_written", "Rows written."), "refused": ("rows_refused", "Rows refused by a sink.")},
}
"""Counters of sources and sinks: the key in the document, the metric name and its description."""


class PrometheusCollector:
    """Converts the metrics on each scrape."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        document, pipeline = self._metrics.document(), self._metrics.pipeline
        for kind, counters in _COUNTERS.items():
            for key, (name, text) in counters.items():
                counter = CounterMetricFamily(_PREFIX + name, text, labels=["pipeline", kind])
                for step, counts in document[f"{kind}s"].items():
                    counter.add_metric([pipeline, step], counts[key])
                yield counter
        labels = ["pipeline", "source"]
        poison = CounterMetricFamily(
            _PREFIX + "rows_poison", "Rows that cannot be decoded.", labels=[*labels, "reason"]
        )
        lag = GaugeMetricFamily(_PREFIX + "lag_records", "Records not read yet.", labels=labels)
        for source, counts in document["sources"].items():
            for reason, rows in counts["poison_by_reason"].items():
                poison.add_metric([pipeline, source, reason], rows)
            if counts["lag"] is not None:
                lag.add_metric([pipeline, source], counts["lag"])
        rate = GaugeMetricFamily(_PREFIX + "rows_per_second", "Rows read per second, over 30 s.", labels=["pipeline"])
        rate.add_metric([pipeline], document["rows_per_second"])
        restarts = CounterMetricFamily(_PREFIX + "restarts", "Restarts for new schema versions.", labels=["pipeline"])
        restarts.add_metric([pipeline], document["restarts"])
        yield from (poison, lag, rate, restarts)


def prometheus_registry(metrics: Metrics) -> "CollectorRegistry":
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(PrometheusCollector(metrics))
    return registry


def serve_prometheus(metrics: Metrics, host: str, port: int) -> Callable[[], None]:
    """Serve `http://HOST:PORT/metrics` until the returned function is called. Raises `OSError`."""
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, addr=host, registry=prometheus_registry(metrics))

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

    return stop
