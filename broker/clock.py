"""Time as an input: a wall clock for timestamps, a monotonic one for waits, and timers that a shell drives.

Nothing in the broker reads the clock by itself, so a test moves time by hand and a jump of the wall clock expires
no session.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some start; never goes back."""
        ...


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class ManualClock:
    """For tests: stands still until `advance`."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        self._wall_ms += milliseconds
        self._monotonic_ms += milliseconds


class Timer:
    """A call planned for a moment of the monotonic clock; `cancel` is cheap and may come twice."""

    __slots__ = ("callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Timers:
    """A heap of planned calls. The shell asks for `next_deadline_ms` and calls `run_due`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self.on_earlier: Callable[[], None] | None = None
        """Called when a new timer becomes the first one, so that the shell can wake up sooner."""

    def after(self, milliseconds: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self._clock.monotonic_ms() + milliseconds, callback)
        heapq.heappush(self._heap, (timer.deadline_ms, next(self._order), timer))
        if self._heap[0][2] is timer and self.on_earlier is not None:
            self.on_earlier()
        return timer

    def next_deadline_ms(self) -> int | None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def run_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        while True:
            deadline_ms = self.next_deadline_ms()
            if deadline_ms is None or deadline_ms > now_ms:
                return
            callback = heapq.heappop(self._heap)[2].callback
            if callback is not None:
                callback()
