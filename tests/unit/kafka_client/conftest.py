from types import SimpleNamespace

import pytest

from headgate.kafka_client.producer import dispatcher, producer
from tests.unit.kafka_client.dispatching import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A manual clock for deadlines. Pauses are short and exact in binary."""
    clock = Clock()
    fake = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 0.0)
    for module in (dispatcher, producer):
        monkeypatch.setattr(module, "time", fake)
    monkeypatch.setattr(dispatcher, "retry_pause_seconds", 2**-10)
    monkeypatch.setattr(dispatcher, "leader_pause_seconds", 2**-9)
    return clock
