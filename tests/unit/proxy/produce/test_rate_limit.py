"""Token buckets of the rate limit."""

import pytest

from headgate.proxy.api import rate_limit
from headgate.proxy.api.rate_limit import RateLimit
from headgate.proxy.errors import TooManyRequests
from headgate.proxy.settings import ProxySettings


def test_a_client_can_use_its_burst_and_then_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("headgate.proxy.api.rate_limit.time.monotonic", lambda: now)
    limit = RateLimit(ProxySettings(rate_limit_requests_per_second=2, rate_limit_burst_seconds=2))
    for _ in range(4):
        limit.take("a")
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.retry_after_seconds == 1
    limit.take("b")
    now = 0.5
    limit.take("a")
    with pytest.raises(TooManyRequests):
        limit.take("a")


def test_the_byte_bucket_may_become_negative_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("headgate.proxy.api.rate_limit.time.monotonic", lambda: now)
    limit = RateLimit(ProxySettings(rate_limit_bytes_per_second=100, rate_limit_burst_seconds=1))
    limit.take("a", size=1000)
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.retry_after_seconds == 9
    now = 9.5
    limit.take("a")


def test_the_number_of_buckets_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "CLIENTS_MAX", 10)
    limit = RateLimit(ProxySettings(rate_limit_requests_per_second=1))
    for number in range(100):
        limit.take(str(number))
    assert len(limit._buckets) == 10


def test_without_a_setting_there_is_no_limit() -> None:
    assert not RateLimit(ProxySettings()).is_on
