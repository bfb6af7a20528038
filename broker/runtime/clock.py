"""Clocks and timers: the wall clock is for timestamps, the monotonic clock is for timeouts.

All code gets the clock as an argument, so tests control the time. A jump of the wall clock does not expire sessions.
"""

import heapq
import itertools
import logging
import time
from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger("headgate.broker.timers")

# Up to this number, cancelled timers stay in the heap.
cancelled_timers_min = 1_000


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the epoch. May jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start. Never decreases."""
        ...


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class Timer:
    """A scheduled callback. `cancel` is cheap and idempotent."""

    __slots__ = ("_on_cancel", "callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[], None], on_cancel: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback: Callable[[], None] | None = callback
        self._on_cancel = on_cancel

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._on_cancel()


class Timers:
    """A heap of scheduled callbacks. The server waits until `next_deadline_ms` and calls `run_due`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._cancelled = 0
        self.on_earlier: Callable[[], None] | None = None
        """Called when a new timer has the earliest deadline, so that the server wakes up sooner."""

    def after(self, milliseconds: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self._clock.monotonic_ms() + milliseconds, callback, self._note_cancelled)
        heapq.heappush(self._heap, (timer.deadline_ms, next(self._order), timer))
        if self._heap[0][2] is timer and self.on_earlier is not None:
            self.on_earlier()
        return timer

    def next_deadline_ms(self) -> int | None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def run_due(self) -> None:
        """Run every callback that is due. An exception is logged and does not affect other callbacks."""
        now_ms = self._clock.monotonic_ms()
        while True:
            deadline_ms = self.next_deadline_ms()
            if deadline_ms is None or deadline_ms > now_ms:
                return
            timer = heapq.heappop(self._heap)[2]
            callback, timer.callback = timer.callback, None
            try:
                if callback is not None:
                    callback()
            except Exception:
                logger.exception("a timer failed")

    def _note_cancelled(self) -> None:
        """Remove cancelled timers if there are many. Otherwise they stay in the heap until their deadlines."""
        self._cancelled += 1
        if self._cancelled > cancelled_timers_min and self._cancelled > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0
