"""Retries of requests while the cluster replaces a broker."""

import asyncio

import pytest

from headgate.kafka_client.admin import retries
from headgate.kafka_client.errors import LeaderNotFound, NodeUnavailable, NotReady


def pauses_before(attempts: int, error: Exception, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns the pauses of a request that fails `attempts` times."""
    pauses: list[float] = []
    failures = [error] * attempts

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def ask() -> str:
        if failures:
            raise failures.pop()
        return "response"

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert asyncio.run(retries.settled(ask)) == "response"
    return pauses


@pytest.mark.parametrize("error", [NotReady("loading"), NodeUnavailable("down"), LeaderNotFound("no leader")])
def test_the_pause_between_attempts_doubles_up_to_a_limit(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = pauses_before(10, error, monkeypatch)
    assert len(pauses) == 10
    limit = retries.settling_pause_seconds_max
    assert pauses == [min(pauses[0] * 2**number, limit) for number in range(10)]
    assert 0 < pauses[0] < pauses[-1] == limit


def test_a_response_at_the_first_attempt_is_not_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_before(0, NotReady("loading"), monkeypatch) == []
