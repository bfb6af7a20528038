"""A broker without sockets on a temporary directory. Tests call its handlers as the engine does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.broker.node import opening
from headgate.broker.node.broker import Broker
from headgate.broker.state.settings import BrokerSettings
from tests.manual_clock import ManualClock
from tests.unit.broker.admin.asking import Admin


def _post(callback: Callable[[], None]) -> None:
    callback()


@pytest.fixture
def open_admin(tmp_path: Path) -> Iterator[Callable[..., Admin]]:
    """Return a function that opens the broker of the test directory and closes the previous one."""
    opened: list[Broker] = []

    def open_broker(**static: str) -> Admin:
        if opened:
            opened.pop().close()
        settings = BrokerSettings({name.replace("_", "."): value for name, value in static.items()})
        broker = opening.open_broker(tmp_path / "data", settings, _post, clock=ManualClock())
        opened.append(broker)
        return Admin(broker)

    yield open_broker
    if opened:
        opened.pop().close()


@pytest.fixture
def admin(open_admin: Callable[..., Admin]) -> Admin:
    return open_admin()
