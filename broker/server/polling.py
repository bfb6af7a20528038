"""Polls the sockets of all connections with one epoll instance, or with the event loop if epoll is missing."""

import asyncio
import select
from collections.abc import Callable
from typing import Final, Protocol

from headgate.broker.runtime.system_calls import HAS_EPOLL

# The values of EPOLLIN and EPOLLOUT.
READ: Final = 1
WRITE: Final = 4

# READ and WRITE with EPOLLERR and EPOLLHUP, which epoll reports without registration.
READABLE: Final = READ | 8 | 16
WRITABLE: Final = WRITE | 8 | 16

# The maximum number of sockets that one poll returns.
ready_sockets_max = 256


class Poller(Protocol):
    def register(self, fd: int, events: int) -> None: ...
    def modify(self, fd: int, events: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self) -> list[tuple[int, int]]:
        """Return the ready sockets with their events."""
        ...

    def close(self) -> None: ...


class EpollPoller:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self.register = self._epoll.register
        self.modify = self._epoll.modify
        self.unregister = self._epoll.unregister
        loop.add_reader(self._epoll.fileno(), on_ready)

    def poll(self) -> list[tuple[int, int]]:
        return self._epoll.poll(0, ready_sockets_max)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


class LoopPoller:
    """Collects events from the event loop. A reported socket may no longer be ready."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._registered: dict[int, int] = {}
        self._ready: dict[int, int] = {}
        self._is_scheduled = False

    def register(self, fd: int, events: int) -> None:
        self._registered[fd] = 0
        self.modify(fd, events)

    def modify(self, fd: int, events: int) -> None:
        before, self._registered[fd] = self._registered[fd], events
        for event, add, remove in (
            (READ, self._loop.add_reader, self._loop.remove_reader),
            (WRITE, self._loop.add_writer, self._loop.remove_writer),
        ):
            if events & event and not before & event:
                add(fd, self._note, fd, event)
            elif before & event and not events & event:
                remove(fd)

    def unregister(self, fd: int) -> None:
        self.modify(fd, 0)
        del self._registered[fd]
        self._ready.pop(fd, None)

    def poll(self) -> list[tuple[int, int]]:
        ready, self._ready = self._ready, {}
        return list(ready.items())

    def close(self) -> None:
        for fd in list(self._registered):
            self.unregister(fd)

    def _note(self, fd: int, event: int) -> None:
        self._ready[fd] = self._ready.get(fd, 0) | event
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._report)

    def _report(self) -> None:
        self._is_scheduled = False
        self._on_ready()


def new_poller(loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> Poller:
    return EpollPoller(loop, on_ready) if HAS_EPOLL else LoopPoller(loop, on_ready)
