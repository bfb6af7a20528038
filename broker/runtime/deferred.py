"""A result that is not available yet: a future without an event loop.

A handler that waits (for a long poll, a rebalance or an fsync) returns a `Deferred`. The server sends the response when
the Deferred completes. Completing it twice is a programming error. When the client disconnects, the server abandons the
Deferred, so that a long poll releases its resources.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Deferred(Generic[T]):
    __slots__ = ("_callbacks", "_result", "blocks_connection", "done", "on_abandon")

    def __init__(self) -> None:
        self.done = False
        self._result: T | None = None
        self._callbacks: list[Callable[[T], None]] = []
        self.on_abandon: Callable[[], None] | None = None
        """Called by `abandon`. A later `complete` is allowed and has no effect."""
        self.blocks_connection = False
        """Whether later requests of the connection must wait, because this request is not executed yet."""

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
        """Call `callback` with the result: immediately if it is available, otherwise on completion."""
        if self.done:
            callback(self._result)  # type: ignore[arg-type]  # if `done` is True, the result is a T
        else:
            self._callbacks.append(callback)

    def abandon(self) -> None:
        """Drop all callbacks, because the result is no longer needed."""
        if not self.done:
            self._callbacks = []
            on_abandon, self.on_abandon = self.on_abandon, None
            if on_abandon is not None:
                on_abandon()

    def map(self, change: Callable[[T], U]) -> "Deferred[U]":
        """Return a Deferred that completes with `change(result)`."""
        mapped: Deferred[U] = Deferred()
        self.then(lambda result: mapped.complete(change(result)))
        return mapped
