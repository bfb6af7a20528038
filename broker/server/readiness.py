"""Fair scheduling of connections: one poller for all sockets, and one time budget per event-loop iteration.

An iteration first serves the ready sockets, a few requests each. Connections that pipeline more requests join a queue.
The queue is served round robin, with a separate time budget. Therefore clients that wait for their responses are served
before the backlog of pipelining clients.

If an iteration executes several requests, their responses are coalesced. A response that is sent alone wakes up its
client. The wake-up costs both sides more than the system call.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headgate.broker.server.polling import READ, READABLE, WRITABLE, WRITE, new_poller

# Time budget for ready sockets per iteration. The remaining sockets wait until timers and new connections have run.
turn_seconds_max = 0.010

# Additional time budget for queued connections per iteration. At least one of them is served. The budget delays every
# other client, so it is about the duration of one request.
queued_seconds_max = 0.0003

# Limits on coalescing: the number of connections with held responses, and how long responses are held.
held_senders_max = 64
held_seconds_max = 0.001


class Sender(Protocol):
    def send_held(self) -> None: ...


class Readiness:
    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        """Seconds, for the time budgets."""
        self.coalesces = False
        """Whether to coalesce responses, because this iteration executes more than one request."""
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
        """Add a callback to the end of the queue. It is called once, and enqueues itself again if it has more work."""
        self._queue.append(serve)
        self._schedule()

    def hold(self, sender: Sender) -> None:
        """Call `sender.send_held` at the end of the iteration, or earlier."""
        held = self._held
        if not held:
            self._held_since = self.now()
        held.append(sender)
        if len(held) > held_senders_max:
            self.release()

    def release(self) -> None:
        """Flush the held responses of all connections. Call this before any long-running work."""
        if self._held:
            held, self._held = self._held, []
            for sender in held:
                sender.send_held()

    def _schedule(self) -> None:
        """Run a turn in the next iteration, even if no socket is ready."""
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._scheduled_turn)

    def _scheduled_turn(self) -> None:
        self._next_turn = None
        self._turn()

    def _on_ready(self) -> None:
        # Run one turn per iteration. A scheduled turn also polls.
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
                # Flush held responses first: the writer usually sends megabytes.
                self.release()
                writer()
        except Exception as error:
            self._report(error)

    def _serve_queued(self) -> None:
        self.coalesces = True
        until = self.now() + queued_seconds_max
        # Serve each connection at most once, so that other clients' new requests are not delayed.
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
