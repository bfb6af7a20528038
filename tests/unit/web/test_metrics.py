import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headgate.web.metrics import HttpMetrics, ServiceMetric


def samples(metrics: HttpMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


async def respond(metrics: HttpMetrics, method: str, status: int) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    counting = metrics.begin({"type": "http", "method": method}, send)
    await counting({"type": "http.response.start", "status": status})
    await counting({"type": "http.response.body", "body": b""})
    metrics.end()
    return sent


def test_responses_are_counted_by_method_and_status() -> None:
    metrics = HttpMetrics("registry")
    for method, status in (("GET", 200), ("GET", 200), ("GET", 404), ("BREW", 418)):
        assert len(asyncio.run(respond(metrics, method, status))) == 2
    metrics.refused(421)
    found = samples(metrics)
    requests = "headgate_http_requests_total"
    assert found[requests, (("method", "GET"), ("service", "registry"), ("status", "200"))] == 2
    assert found[requests, (("method", "GET"), ("service", "registry"), ("status", "404"))] == 1
    assert found[requests, (("method", "OTHER"), ("service", "registry"), ("status", "418"))] == 1
    assert found["headgate_http_refusals_total", (("service", "registry"), ("status", "421"))] == 1
    assert found["headgate_http_requests_in_flight", (("service", "registry"),)] == 0
    count = "headgate_http_request_seconds_count"
    assert found[count, (("method", "GET"), ("service", "registry"))] == 3
    assert (
        found["headgate_http_request_seconds_bucket", (("le", "+Inf"), ("method", "GET"), ("service", "registry"))] == 3
    )


def test_a_request_without_a_response_is_in_flight() -> None:
    metrics = HttpMetrics("proxy")
    metrics.begin({"type": "http", "method": "GET"}, None)  # type: ignore[arg-type]
    assert samples(metrics)["headgate_http_requests_in_flight", (("service", "proxy"),)] == 1


def test_a_service_adds_its_own_metrics() -> None:
    def more() -> list[ServiceMetric]:
        return [
            ServiceMetric("headgate_poison_records", "help", 3, (("reason", "TRUNCATED"),), True),
            ServiceMetric("headgate_poison_records", "help", 1, (("reason", "CORRUPT"),), True),
            ServiceMetric("headgate_proxy_streams", "help", 7),
        ]

    found = samples(HttpMetrics("proxy", more))
    assert found["headgate_poison_records_total", (("reason", "TRUNCATED"), ("service", "proxy"))] == 3
    assert found["headgate_poison_records_total", (("reason", "CORRUPT"), ("service", "proxy"))] == 1
    assert found["headgate_proxy_streams", (("service", "proxy"),)] == 7


def test_a_stall_of_the_event_loop_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = HttpMetrics("proxy")

    async def stall() -> None:
        loop = asyncio.get_running_loop()
        clock = loop.time()
        monkeypatch.setattr(loop, "time", lambda: clock)
        metrics.watch_event_loop()
        clock += 10
        await asyncio.sleep(0)

    asyncio.run(stall())
    assert samples(metrics)["headgate_event_loop_stalls_total", (("service", "proxy"),)] >= 1
