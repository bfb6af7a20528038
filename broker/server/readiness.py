"""Which connections can be read or written, and the turn in which they are: one epoll for all of them.

An event loop calls back for each ready socket by itself. Here all that are ready come at once, which costs less and
tells how busy it is: where several requests are executed in a turn, their answers are held back and sent together when
it ends. Sent one by one, each wakes up a client that has just gone to sleep, which costs both sides more than the
sending; sent together, they find it awake.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Protocol

# Sockets served in a turn, before timers and new connections have theirs.
ready_per_turn_max = 256

# Answers are held back for no longer than the turn, and neither for more than so many requests nor so long.
held_answers_max = 64
held_ms_max = 1

_READ = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
_WRITE = select.EPOLLOUT | select.EPOLLHUP | select.EPOLLERR


class Sender(Protocol):
    def send_held(self) -> None: ...


class Readiness:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}
        self._held: list[Sender] = []
        self._held_since_ms = 0
        self.is_busy = False
        """Whether this turn has more than one socket to serve."""
        self.call_soon = loop.call_soon
        loop.add_reader(self._epoll.fileno(), self._turn)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self._watch(fd, self._readers, callback)

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        self._watch(fd, self._writers, callback)

    def remove_reader(self, fd: int) -> None:
        self._unwatch(fd, self._readers)

    def remove_writer(self, fd: int) -> None:
        self._unwatch(fd, self._writers)

    def _watch(self, fd: int, callbacks: dict[int, Callable[[], None]], callback: Callable[[], None]) -> None:
        is_new = fd not in self._readers and fd not in self._writers
        callbacks[fd] = callback
        if is_new:
            self._epoll.register(fd, self._mask(fd))
        else:
            self._epoll.modify(fd, self._mask(fd))

    def _unwatch(self, fd: int, callbacks: dict[int, Callable[[], None]]) -> None:
        if callbacks.pop(fd, None) is None:
            return
        mask = self._mask(fd)
        if mask:
            self._epoll.modify(fd, mask)
        else:
            # Not watched for nothing: a peer that hung up would be told of without end.
            self._epoll.unregister(fd)

    def _mask(self, fd: int) -> int:
        return (select.EPOLLIN if fd in self._readers else 0) | (select.EPOLLOUT if fd in self._writers else 0)

    def hold(self, sender: Sender, now_ms: int) -> None:
        """Have `sender` send when the turn ends, or sooner."""
        held = self._held
        if not held:
            self._held_since_ms = now_ms
        held.append(sender)
        if len(held) >= held_answers_max or now_ms - self._held_since_ms > held_ms_max:
            self.release()

    def release(self) -> None:
        """Send what is held back; also for who is about to do what may take a while."""
        if self._held:
            held, self._held = self._held, []
            for sender in held:
                sender.send_held()

    def _turn(self) -> None:
        ready = self._epoll.poll(0, ready_per_turn_max)
        self.is_busy = len(ready) > 1
        readers, writers = self._readers, self._writers
        for fd, events in ready:
            try:
                # Looked up when its turn has come: whoever was before may have ended it.
                if events & _READ and (reader := readers.get(fd)) is not None:
                    reader()
                if events & _WRITE and (writer := writers.get(fd)) is not None:
                    # Megabytes, most likely.
                    self.release()
                    writer()
            except Exception as error:
                self._loop.call_exception_handler({"message": "serving a connection failed", "exception": error})
        self.is_busy = False
        self.release()
