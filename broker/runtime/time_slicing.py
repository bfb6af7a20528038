"""Time slicing: long-running work runs in short slices, so that one request does not delay other clients.

A request may create ten thousand partitions. All of them must be on disk before the response. The handler of a
long-running request is a generator. It yields where other requests may run, and returns the response. All generators
share one slice per event-loop iteration, in round-robin order. A generator that yields a Deferred continues when the
Deferred completes.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.runtime.deferred import Deferred

logger = logging.getLogger("headgate.broker.time_slicing")

# The length of a slice, for all work together. Most requests finish in their first slice.
slice_ms_max = 5

T = TypeVar("T")
F = TypeVar("F")

Work: TypeAlias = Generator[None, None, T]
WaitingWork: TypeAlias = Generator[Deferred[None] | None, None, T]


class _Job:
    __slots__ = ("is_exclusive", "on_done", "on_failure", "work")

    def __init__(
        self,
        work: WaitingWork[Any],
        *,
        is_exclusive: bool,
        on_done: Callable[[Any], None],
        on_failure: Callable[[], None],
    ) -> None:
        self.work = work
        self.is_exclusive = is_exclusive
        self.on_done = on_done
        self.on_failure = on_failure


class TimeSlices(Generic[F]):
    """Runs work in time slices.

    Exclusive work (changes to topics) runs one job at a time, as in Kafka's controller. Therefore no job sees the
    unfinished changes of another job. If work raises an exception after `run` returned, it completes with `failure`.
    """

    def __init__(self, clock: Clock, timers: Timers, failure: F) -> None:
        self._failure = failure
        self._clock = clock
        self._timers = timers
        self._running: deque[_Job] = deque()
        self._exclusive_waiting: deque[_Job] = deque()
        self._has_exclusive = False
        self._is_planned = False

    def run(self, work: WaitingWork[T], *, is_exclusive: bool = False) -> T | Deferred[T | F]:
        """Run the first slice. Returns the result if the work is complete, otherwise a Deferred of the result."""
        if not (is_exclusive and self._has_exclusive):
            until_ms = self._clock.monotonic_ms() + slice_ms_max
            while True:
                try:
                    awaited = next(work)
                except StopIteration as done:
                    result: T = done.value
                    return result
                if (awaited is not None and not awaited.done) or self._clock.monotonic_ms() >= until_ms:
                    break
        else:
            awaited = None
        promise: Deferred[T | F] = Deferred()
        job = _Job(
            work,
            is_exclusive=is_exclusive,
            on_done=promise.complete,
            on_failure=lambda: promise.complete(self._failure),
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
        """Run the job's next step in the next slice, or after `awaited` completes."""
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
        """Run one step of a job. Returns whether the job has more steps."""
        try:
            self._go_on(job, next(job.work))
            return True
        except StopIteration as done:
            job.on_done(done.value)
        except Exception:
            logger.exception("a request failed after its first slice")
            job.on_failure()
        return False
