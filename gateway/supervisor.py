"""Runs the services as child processes. If one exits, all stop.

Separate processes keep a busy service from blocking the event loop of another. Each child has a pipe as standard input
and stops at its end. The kernel closes the pipe when the supervisor dies, so no child outlives it. The supervisor
forwards the output of the children line by line. A child is ready when it logs its listen address.
"""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

# Last log lines of a failed service: enough for a traceback.
tail_lines_max = 40
line_bytes_max = 64 * 1024

_LISTENING = re.compile(r"\blistening on (?:http://)?(\S+:\d+)$")


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    command: tuple[str, ...]
    stop_seconds_max: float
    """Time limit for a clean stop, then the process is killed. Acknowledged data survives a kill."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the environment of the child. For secrets: other users can read the command line, but not this."""


class ServiceDied(Exception):
    """A service exited unexpectedly."""

    def __init__(self, service: Service, exit_code: int, tail: Sequence[str]) -> None:
        super().__init__(f"the {service.name} ended with {_status_text(exit_code)}")
        self.service = service
        self.exit_code = exit_code
        self.tail = tuple(tail)


def _status_text(exit_code: int) -> str:
    try:
        return f"exit code {exit_code} (signal {signal.Signals(-exit_code).name})"
    except ValueError:
        return f"exit code {exit_code}"


class Supervisor:
    def __init__(self, services: Sequence[Service], on_line: Callable[[Service, str], None]) -> None:
        self._services = tuple(services)
        self._on_line = on_line
        self._children: list[_Child] = []

    async def start(self) -> dict[str, str]:
        """Start all services in parallel and return their addresses when all are ready. Raises ServiceDied."""
        for service in self._services:
            child = _Child(service, self._on_line)
            await child.start()
            self._children.append(child)
        await asyncio.gather(*(child.wait_until_ready() for child in self._children))
        return {child.service.name: child.ready.result() for child in self._children}

    async def watch(self) -> None:
        """Wait until a service exits. Always raises ServiceDied."""
        await asyncio.wait([child.ended for child in self._children], return_when=asyncio.FIRST_COMPLETED)
        for child in self._children:
            if child.ended.done():
                raise child.death()

    async def stop(self) -> list[str]:
        """Stop the services in reverse order, because later services depend on earlier ones.

        Returns the names of the services that were killed.
        """
        killed = []
        for child in reversed(self._children):
            child.signal(signal.SIGTERM)
            if await child.wait_or_kill():
                killed.append(child.service.name)
        return killed

    def kill(self) -> None:
        for child in self._children:
            child.signal(signal.SIGKILL)


class _Child:
    def __init__(self, service: Service, on_line: Callable[[Service, str], None]) -> None:
        self.service = service
        self.ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._on_line = on_line
        self._tail: deque[str] = deque(maxlen=tail_lines_max)

    async def start(self) -> None:
        # A new session: Ctrl-C reaches only the supervisor, which controls the order of the stop.
        self._process = await asyncio.create_subprocess_exec(
            *self.service.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=line_bytes_max,
            start_new_session=True,
            env={**os.environ, **self.service.environment},
        )
        self.ended = asyncio.create_task(self._read_to_the_end())

    async def _read_to_the_end(self) -> int:
        output = self._process.stdout
        assert output is not None
        while True:
            try:
                raw = await output.readline()
            except ValueError:
                continue  # the line exceeds the limit, and asyncio has dropped it
            if not raw:
                break
            line = raw.decode("utf-8", errors="replace").rstrip()
            address = _LISTENING.search(line)
            if address is not None and not self.ready.done():
                self.ready.set_result(address[1])
                continue
            self._tail.append(line)
            self._on_line(self.service, line)
        return await self._process.wait()

    async def wait_until_ready(self) -> None:
        either: list[asyncio.Future[Any]] = [self.ready, self.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self.ready.done():
            raise self.death()

    def death(self) -> ServiceDied:
        return ServiceDied(self.service, self.ended.result(), self._tail)

    def signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def wait_or_kill(self) -> bool:
        done, _ = await asyncio.wait([self.ended], timeout=self.service.stop_seconds_max)
        if done:
            return False
        self.signal(signal.SIGKILL)
        await self.ended
        return True
