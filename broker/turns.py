"""Time slicing: long work runs in short slices, so that one request does not delay every other client.

A request may create ten thousand partitions or change the configs of as many topics, each on disk before the response.
Its handler is a generator that yields wherever other requests may be served; its return value is the response. All
such work shares one slice per event-loop iteration, round robin. Work that yields a Deferred goes on when that is
complete.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeAlias

from headgate.broker.clock import Clock, Timers
from headgate.broker.deferred import Deferred
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.payload import Disconnect

if TYPE_CHECKING:
    from headgate.broker.broker import Broker

logger = logging.getLogger("headgate.broker.turns")

# Long enough that the work of ordinary requests is done in the first slice, short enough that clients do not notice.
# This is for all work together.
slice_ms_max = 5

Work: TypeAlias = Generator[None, None, Answer]
WaitingWork: TypeAlias = Generator[Deferred[None] | None, None, Answer]


class _Job:
    __slots__ = ("is_exclusive", "on_done", "on_failure", "work")

    def __init__(
        self,
        work: WaitingWork,
        *,
        is_exclusive: bool,
        on_done: Callable[[Answer], None],
        on_failure: Callable[[], None],
    ) -> None:
        self.work = work
        self.is_exclusive = is_exclusive
        self.on_done = on_done
        self.on_failure = on_failure


class TimeSlices:
    """The work that goes on after its first slice.

    Exclusive work (changes to topics) runs one after the other, as in Kafka's controller: none sees the half-done
    work of another.
    """

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._running: deque[_Job] = deque()
        self._exclusive_waiting: deque[_Job] = deque()
        self._has_exclusive = False
        self._is_planned = False

    def run(self, work: WaitingWork, *, is_exclusive: bool = False) -> Answer | Deferred[Answer | Disconnect]:
        """The response when the first slice is enough, otherwise the promise of it."""
        if not (is_exclusive and self._has_exclusive):
            until_ms = self._clock.monotonic_ms() + slice_ms_max
            while True:
                try:
                    awaited = next(work)
                except StopIteration as done:
                    answer: Answer = done.value
                    return answer
                if (awaited is not None and not awaited.done) or self._clock.monotonic_ms() >= until_ms:
                    break
        else:
            awaited = None
        promise: Deferred[Answer | Disconnect] = Deferred()
        disconnect = Disconnect("the request failed; see the traceback above")
        job = _Job(
            work,
            is_exclusive=is_exclusive,
            on_done=promise.complete,
            on_failure=lambda: promise.complete(disconnect),
        )
        self._add(job, awaited)
        return promise

    def _add(self, job: _Job, awaited: Deferred[None] | None) -> None:
        if job.is_exclusive and self._has_exclusive:
            self._exclusive_waiting.append(job)
        else:
            self._has_exclusive = self._has_exclusive or job.is_exclusive
            self._go_on(job, awaited)
            if self._running:
                self._plan()

    def _go_on(self, job: _Job, awaited: Deferred[None] | None) -> None:
        """Run the job's next step in its next turn, or after `awaited` is complete."""
        if awaited is None or awaited.done:
            self._running.append(job)
        else:
            awaited.then(lambda _: self._wake_up(job))

    def _wake_up(self, job: _Job) -> None:
        self._running.append(job)
        self._plan()

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._timers.after(0, self._slice)

    def _slice(self) -> None:
        self._is_planned = False
        until_ms = self._clock.monotonic_ms() + slice_ms_max
        running = self._running
        while running:
            job = running.popleft()
            if not self._step(job) and job.is_exclusive:
                self._has_exclusive = bool(self._exclusive_waiting)
                if self._exclusive_waiting:
                    running.append(self._exclusive_waiting.popleft())
            if self._clock.monotonic_ms() >= until_ms:
                break
        if running:
            self._plan()

    def _step(self, job: _Job) -> bool:
        """Do one step of a job; whether there are more."""
        try:
            self._go_on(job, next(job.work))
            return True
        except StopIteration as done:
            job.on_done(done.value)
        except Exception:
            logger.exception("a request failed after its first slice")
            job.on_failure()
        return False


def in_turns(
    broker: "Broker", work: WaitingWork, *, is_exclusive: bool = False
) -> Answer | Deferred[Answer | Disconnect]:
    """Run work in slices, together with all other such work of the broker."""
    return broker.slices.run(work, is_exclusive=is_exclusive)
