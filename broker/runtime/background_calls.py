"""Runs function calls in a few threads, for work that would block the event loop."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.worker_threads import Post, WorkerThreads

logger = logging.getLogger("headgate.broker.background")

T = TypeVar("T")


class _Call(Generic[T]):
    """A waiting or running call. Only the event loop's thread cancels it or takes its result."""

    __slots__ = ("_deferred", "_function", "_result")

    def __init__(self, function: Callable[[], T], deferred: Deferred[T | None]) -> None:
        self._function: Callable[[], T] | None = function
        self._deferred: Deferred[T | None] | None = deferred
        self._result: T | None = None

    def run(self) -> None:
        function = self._function
        if function is not None:
            try:
                self._result = function()
            except Exception:
                logger.exception("a call in a thread failed")
        self._function = None

    def cancel(self) -> None:
        """Cancel the call. If it already runs, drop its result."""
        self._function = self._deferred = None

    def finish(self) -> None:
        if self._deferred is not None:
            self._deferred.complete(self._result)


class BackgroundCalls:
    """A bounded thread pool. Callers bound the queue: each connection waits for one call at a time."""

    def __init__(self, post: Post, name: str, threads: int) -> None:
        self._post = post
        self._threads: WorkerThreads[_Call[Any]] = WorkerThreads(name, threads, self._work)

    def run(self, function: Callable[[], T]) -> Deferred[T | None]:
        """Run a call in a thread. The result is None if the call raises. Abandon the Deferred to cancel the call."""
        deferred: Deferred[T | None] = Deferred()
        call = _Call(function, deferred)
        deferred.on_abandon = call.cancel
        self._threads.start()
        self._threads.submit(call)
        return deferred

    def stop(self) -> None:
        self._threads.stop()

    def _work(self, calls: Iterator[_Call[Any]]) -> None:
        for call in calls:
            call.run()
            self._post(call.finish)
            del call
