"""What a pipeline counts: rows read, good, poison by reason, rows written, lag and speed; as JSON and for Prometheus.

`read = good + poison` holds for every source at any time: a batch is counted as a whole, once it is written.
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

SPEED_SECONDS = 30.0
"""The speed is that of the last so many seconds."""


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
    """Batches that had been written before."""


class Metrics:
    """Counts of one run. Safe to share between threads."""

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
        """So that a count of nothing is 0, and not missing."""
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
        """Everything, as JSON has it."""
        with self._lock:
            now = self._clock()
            self._recent = [each for each in self._recent if each[0] > now - SPEED_SECONDS]
            span = min(max(now - self._started, 0.001), SPEED_SECONDS)
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
        """In one piece: whoever reads it never sees half."""
        temporary = file.with_name(f".{file.name}.new")
        temporary.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")
        temporary.replace(file)


class PrometheusView:
    """The counts as Prometheus wants them, made when they are asked for."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        document = self._metrics.document()
        pipeline = self._metrics.pipeline
        labels = ["pipeline", "source"]
        read = CounterMetricFamily("headgate_pipeline_rows_read", "Rows read.", labels=labels)
        good = CounterMetricFamily("headgate_pipeline_rows_good", "Rows that could be read.", labels=labels)
        poison = CounterMetricFamily("headgate_pipeline_rows_poison", "Dead letters.", labels=[*labels, "reason"])
        batches = CounterMetricFamily("headgate_pipeline_batches", "Micro-batches.", labels=labels)
        lag = GaugeMetricFamily("headgate_pipeline_lag_records", "Records that wait to be read.", labels=labels)
        for name, each in document["sources"].items():
            read.add_metric([pipeline, name], each["read"])
            good.add_metric([pipeline, name], each["good"])
            batches.add_metric([pipeline, name], each["batches"])
            for reason, rows in each["poison_by_reason"].items():
                poison.add_metric([pipeline, name, reason], rows)
            if each["lag"] is not None:
                lag.add_metric([pipeline, name], each["lag"])
        yield from (read, good, poison, batches, lag)
        labels = ["pipeline", "sink"]
        written = CounterMetricFamily("headgate_pipeline_rows_written", "Rows written.", labels=labels)
        refused = CounterMetricFamily("headgate_pipeline_rows_refused", "Rows a sink cannot hold.", labels=labels)
        for name, each in document["sinks"].items():
            written.add_metric([pipeline, name], each["rows"])
            refused.add_metric([pipeline, name], each["refused"])
        yield from (written, refused)
        speed = GaugeMetricFamily(
            "headgate_pipeline_rows_per_second", "Rows read a second, lately.", labels=["pipeline"]
        )
        speed.add_metric([pipeline], document["rows_per_second"])
        restarts = CounterMetricFamily(
            "headgate_pipeline_restarts", "Restarts for new versions of a schema.", labels=["pipeline"]
        )
        restarts.add_metric([pipeline], document["restarts"])
        yield from (speed, restarts)


def prometheus_registry(metrics: Metrics) -> "CollectorRegistry":
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(PrometheusView(metrics))
    return registry


def serve_prometheus(metrics: Metrics, host: str, port: int) -> Callable[[], None]:
    """Answers on `http://HOST:PORT/metrics` until what is returned is called. Raises `OSError`."""
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, addr=host, registry=prometheus_registry(metrics))

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

    return stop
