"""An answer that is not ready yet: a promise without an event loop.

A handler that must wait (a long poll, a rebalance, an fsync) returns a `Deferred`; whoever holds the reason completes
it; the server writes the answer then. Completing twice is a programming error, forgetting a connection is not: the
server drops its callback when the client has gone.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Deferred(Generic[T]):
    __slots__ = ("_callbacks", "_result", "done")

    def __init__(self) -> None:
        self.done = False
        self._result: T | None = None
        self._callbacks: list[Callable[[T], None]] = []

    @classmethod
    def of(cls, result: T) -> "Deferred[T]":
        deferred: Deferred[T] = cls()
        deferred.complete(result)
        return deferred

    def complete(self, result: T) -> None:
        if self.done:
            raise RuntimeError("a Deferred completes once")
        self.done = True
        self._result = result
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(result)

    def then(self, callback: Callable[[T], None]) -> None:
        """Call back with the result: now if it is there, else when it comes."""
        if self.done:
            callback(self._result)  # type: ignore[arg-type]  # `done` says that the result is a T
        else:
            self._callbacks.append(callback)

    def map(self, change: Callable[[T], U]) -> "Deferred[U]":
        """The same answer in another form, when it comes."""
        mapped: Deferred[U] = Deferred()
        self.then(lambda result: mapped.complete(change(result)))
        return mapped
