"""Answers wait here until the state behind them is consistent.

Completing a `Deferred` runs the server's callback, and that may bring in the next request of the same connection. A
group must not be entered in the middle of a rebalance, so its methods post answers and the coordinator's entry points
send them when they are done.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from headgate.broker.runtime.deferred import Deferred

T = TypeVar("T")


class Outbox:
    def __init__(self) -> None:
        self._answers: deque[Callable[[], None]] = deque()
        self._is_sending = False

    def post(self, deferred: Deferred[T], result: T) -> None:
        self._answers.append(partial(deferred.complete, result))

    def send(self) -> None:
        """Complete what was posted, in order, and what that brings. A nested call leaves the work to the outer one."""
        if self._is_sending:
            return
        self._is_sending = True
        try:
            while self._answers:
                self._answers.popleft()()
        finally:
            self._is_sending = False
