"""An answer that is not ready yet: a promise without an event loop.

A handler that must wait (a long poll, a rebalance, an fsync) returns a `Deferred`; whoever holds the reason completes
it; the server writes the answer then. Completing twice is a programming error. When the client has gone the server
abandons the answer, so that a long poll does not keep its place for nobody.
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
        """Called when nobody waits for the result any more. It may still be completed, into the void."""
        self.blocks_connection = False
        """Whether the request is not executed yet: later requests of its connection must not overtake it."""

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

    def abandon(self) -> None:
        """Drop every callback: nobody waits for the result any more."""
        if not self.done:
            self._callbacks = []
            on_abandon, self.on_abandon = self.on_abandon, None
            if on_abandon is not None:
                on_abandon()

    def map(self, change: Callable[[T], U]) -> "Deferred[U]":
        """The same answer in another form, when it comes."""
        mapped: Deferred[U] = Deferred()
        self.then(lambda result: mapped.complete(change(result)))
        return mapped
