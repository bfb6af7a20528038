"""Runs a broker with its server in a thread of the test process, so that tests can block its worker threads."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.broker.server.server import Server
from headgate.broker.state.settings import BrokerSettings
from tests.live.ports import free_port

SECONDS_MAX = 60.0


class ServerThread:
    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(SECONDS_MAX)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        host, _, port = self.address.rpartition(":")
        self.server = Server(self._folder, BrokerSettings({}), host, int(port))
        self.server.start()
        self._started.set()
        await self._stopping.wait()
        self.server.stop()

    def call(self, callback: Callable[[], None]) -> None:
        """Schedule a callback on the event loop and return immediately."""
        self._loop.call_soon_threadsafe(callback)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()


@contextmanager
def serving(folder: Path) -> Iterator[ServerThread]:
    server = ServerThread(folder)
    try:
        yield server
    finally:
        server.stop()


def eventually(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)
