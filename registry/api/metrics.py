"""Metrics of the registry, in addition to those of every HTTP server (`web.metrics`)."""

from collections.abc import Iterator

from headgate.web.metrics import ServiceMetric
from headgate.web.repeated_requests import RepeatedRequests


def registry_metrics(repeated: RepeatedRequests) -> Iterator[ServiceMetric]:
    yield ServiceMetric(
        "headgate_registry_repeated_requests",
        "Requests that were answered with the bytes of an earlier response. No other metric counts them.",
        repeated.hits,
        is_counter=True,
    )
