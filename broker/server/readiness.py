"""Fair scheduling of connections: one poller for all sockets, and one time budget per event-loop iteration.

An iteration first serves the sockets that became ready, a few requests each. Connections that pipeline more requests
than that join a queue, which is served round robin for the rest of the time budget. So a client that waits for its
responses is served ahead of the backlog of clients that do not.

Where several requests are executed in an iteration, their responses are held back and sent together. Each response
that is sent alone wakes up a client that has just gone to sleep, which costs both sides more than the system call.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headgate.broker.server.polling import READ, READABLE, WRITABLE, WRITE, new_poller

# How long sockets are served in an iteration. The others wait for the next one, after timers and new connections.
turn_seconds_max = 0.010

# How long queued connections are served in an iteration, in addition: at least one of them, however late it is.
# This delays every other client, so it is about as long as a request takes.
queued_seconds_max = 0.0003

# Responses are held back until the iteration ends, but not more of them and not for longer than this.
held_senders_max = 64
held_seconds_max = 0.001


class Sender(Protocol):
    def send_held(self) -> None: ...


class Readiness:
    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        """Seconds, for the time budgets."""
        self.coalesces = False
        """Whether responses are held back: this iteration executes more than one request."""
        self._loop = loop
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}
        self._ready: deque[tuple[int, int]] = deque()
        self._queue: deque[Callable[[], None]] = deque()
        self._next_turn: asyncio.Handle | None = None
        self._held: list[Sender] = []
        self._held_since = 0.0
        self._poller = new_poller(loop, self._on_ready)
        self._poll = self._poller.poll

    def close(self) -> None:
        if self._next_turn is not None:
            self._next_turn.cancel()
        self._poller.close()

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
            self._poller.register(fd, self._mask(fd))
        else:
            self._poller.modify(fd, self._mask(fd))

    def _unwatch(self, fd: int, callbacks: dict[int, Callable[[], None]]) -> None:
        if callbacks.pop(fd, None) is None:
            return
        mask = self._mask(fd)
        if mask:
            self._poller.modify(fd, mask)
        else:
            # Unregister idle sockets from epoll. Otherwise a closed peer triggers EPOLLHUP in a busy loop.
            self._poller.unregister(fd)

    def _mask(self, fd: int) -> int:
        return (READ if fd in self._readers else 0) | (WRITE if fd in self._writers else 0)

    def enqueue(self, serve: Callable[[], None]) -> None:
        """Call `serve` once, after those that are queued already. It enqueues itself again if it has more to do."""
        self._queue.append(serve)
        self._schedule()

    def hold(self, sender: Sender) -> None:
        """Call `sender.send_held` when the iteration ends, or sooner."""
        held = self._held
        if not held:
            self._held_since = self.now()
        held.append(sender)
        if len(held) > held_senders_max:
            self.release()

    def release(self) -> None:
        """Send the responses that are held back. Call this before work that takes long."""
        if self._held:
            held, self._held = self._held, []
            for sender in held:
                sender.send_held()

    def _schedule(self) -> None:
        """Have a turn in the next iteration, whether or not a socket is ready by then."""
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._scheduled_turn)

    def _scheduled_turn(self) -> None:
        self._next_turn = None
        self._turn()

    def _on_ready(self) -> None:
        # One turn per iteration: the scheduled turn polls, too.
        if self._next_turn is None:
            self._turn()

    def _turn(self) -> None:
        now = self.now
        ready = self._ready
        if not ready:
            ready.extend(self._poll())
        self.coalesces = len(ready) > 1
        until = now() + turn_seconds_max
        while ready:
            self._serve_socket(*ready.popleft())
            time_now = now()
            if self._held and time_now - self._held_since > held_seconds_max:
                self.release()
            if time_now >= until:
                break
        self.release()
        if self._queue:
            self._serve_queued()
        self.coalesces = False
        if ready or self._queue:
            self._schedule()

    def _serve_socket(self, fd: int, events: int) -> None:
        try:
            # Look up the callbacks late: an earlier callback may have closed the connection.
            if events & READABLE and (reader := self._readers.get(fd)) is not None:
                reader()
            if events & WRITABLE and (writer := self._writers.get(fd)) is not None:
                # This usually sends megabytes.
                self.release()
                writer()
        except Exception as error:
            self._report(error)

    def _serve_queued(self) -> None:
        self.coalesces = True
        until = self.now() + queued_seconds_max
        # Each at most once, so that new requests of other clients come in between.
        for _ in range(len(self._queue)):
            try:
                self._queue.popleft()()
            except Exception as error:
                self._report(error)
            if self.now() >= until:
                break
        self.release()

    def _report(self, error: Exception) -> None:
        self._loop.call_exception_handler({"message": "serving a connection failed", "exception": error})
