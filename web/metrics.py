"""`GET /metrics`: metrics of an HTTP server in the format of Prometheus.

| metric | labels | meaning |
|---|---|---|
| `headgate_http_requests_total` | `service`, `method`, `status` | responses |
| `headgate_http_request_seconds` | `service`, `method` | histogram of the time to the first byte of a response |
| `headgate_http_requests_in_flight` | `service` | requests without a complete response |
| `headgate_http_refusals_total` | `service`, `status` | requests that the Host, Origin or body check refused |
| `headgate_event_loop_stalls_total`, `headgate_event_loop_stall_seconds_total` | `service` | pauses above 50 ms |

Each service adds its own metrics (`docs/metrics.md`). Labels have few values: unknown methods count as `OTHER`.
Counting uses plain integers, because it is part of every request. `prometheus_client` renders them.
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from headgate.web.asgi import Message, Scope, Send

PATH: Final = "/metrics"
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STALL_SECONDS: Final = 0.05
"""A pause of the event loop that is counted as a stall."""
WATCH_SECONDS: Final = 0.1
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class ServiceMetric:
    """A metric of one service. The value is read when the metrics are requested."""

    name: str
    help: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    is_counter: bool = False


class HttpMetrics:
    """Not thread-safe: use it on the event loop only."""

    def __init__(self, service: str, more: Callable[[], Iterable[ServiceMetric]] = tuple) -> None:
        self._service = service
        self._more = more
        self._responses: Counter[tuple[str, int]] = Counter()
        self._refusals: Counter[int] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._in_flight = 0
        self._stalls = 0
        self._stall_seconds = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def begin(self, scope: Scope, send: Send) -> Send:
        """Count a request. Returns the `send` that counts its response. Call `end` when the request has ended."""
        started = time.perf_counter()
        method: str = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._in_flight += 1

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._responses[method, message["status"]] += 1
                seconds = time.perf_counter() - started
                counts = self._buckets.get(method)
                if counts is None:
                    counts = self._buckets[method] = [0] * (len(BUCKETS_SECONDS) + 1)
                counts[bisect_left(BUCKETS_SECONDS, seconds)] += 1
                self._seconds[method] = self._seconds.get(method, 0.0) + seconds
            await send(message)

        return counting

    def end(self) -> None:
        self._in_flight -= 1

    def refused(self, status: int) -> None:
        self._refusals[status] += 1

    def watch_event_loop(self) -> None:
        """Count stalls of the running event loop from now on."""
        loop = asyncio.get_running_loop()

        def check(expected: float) -> None:
            now = loop.time()
            if now - expected > STALL_SECONDS:
                self._stalls += 1
                self._stall_seconds += now - expected
            loop.call_at(now + WATCH_SECONDS, check, now + WATCH_SECONDS)

        check(loop.time())

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """For `prometheus_client`."""
        service = [self._service]
        responses = CounterMetricFamily(
            "headgate_http_requests", "HTTP responses.", labels=["service", "method", "status"]
        )
        for (method, status), count in self._responses.items():
            responses.add_metric([self._service, method, str(status)], count)
        yield responses
        latency = HistogramMetricFamily(
            "headgate_http_request_seconds", "Time to the first byte of a response.", labels=["service", "method"]
        )
        for method, counts in self._buckets.items():
            latency.add_metric([self._service, method], list(_cumulative(counts)), self._seconds[method])
        yield latency
        refusals = CounterMetricFamily(
            "headgate_http_refusals", "Requests that the access check refused.", labels=["service", "status"]
        )
        for status, count in self._refusals.items():
            refusals.add_metric([self._service, str(status)], count)
        yield refusals
        in_flight = GaugeMetricFamily(
            "headgate_http_requests_in_flight", "Requests without a complete response.", labels=["service"]
        )
        in_flight.add_metric(service, self._in_flight)
        yield in_flight
        for name, text, value in (
            ("headgate_event_loop_stalls", "Pauses of the event loop.", self._stalls),
            ("headgate_event_loop_stall_seconds", "Time of these pauses.", self._stall_seconds),
        ):
            stalls = CounterMetricFamily(name, text, labels=["service"])
            stalls.add_metric(service, value)
            yield stalls
        yield from self._service_metrics()

    def _service_metrics(self) -> Iterator[Metric]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for each in self._more():
            names, values = [name for name, _ in each.labels], [value for _, value in each.labels]
            family = families.get(each.name)
            if family is None:
                kind = CounterMetricFamily if each.is_counter else GaugeMetricFamily
                family = families[each.name] = kind(each.name, each.help, labels=["service", *names])
            family.add_metric([self._service, *values], each.value)
        yield from families.values()


def _cumulative(counts: list[int]) -> Iterator[tuple[str, float]]:
    total = 0
    for bound, count in zip((*map(str, BUCKETS_SECONDS), "+Inf"), counts, strict=True):
        total += count
        yield bound, total
