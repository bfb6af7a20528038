"""Queue of responses that are sent when the state of the group is consistent.

Completing a `Deferred` calls the server, which may execute the next request of the same connection. This must not
happen during a rebalance. Therefore groups post responses, and the public methods of the coordinator send them last.
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
        """Complete all posted responses in order. A nested call returns at once: the outer call continues."""
        if self._is_sending:
            return
        self._is_sending = True
        try:
            while self._answers:
                self._answers.popleft()()
        finally:
            self._is_sending = False
