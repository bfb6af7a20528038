"""Single writer with group commit: operations that arrive during a commit share the next one.

An operation returns after its commit, and after the response cache has dropped stale responses. Batches of inline
operations run on the event loop and only their commit runs in the writer thread. A batch with a long operation runs in
the writer thread entirely. Readers never wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from headgate.registry.errors import RegistryError, StoreFailed
from headgate.registry.storage.base import BatchOutcome, RegistryStore, StoreWriter, Touched

T = TypeVar("T")

_BATCH_OPERATIONS_MAX: Final = 64
"""Operations per commit. A batch of inline operations blocks the event loop for about ten milliseconds."""
_QUEUED_OPERATIONS_MAX: Final = 10_000
"""Beyond this number new operations fail: clients send faster than the store commits."""


class WriteQueue:
    def __init__(self, store: RegistryStore, committed: Callable[[Touched], int]) -> None:
        """`committed` invalidates cached responses and returns the new cache generation."""
        self._store = store
        self._committed = committed
        self._queue: deque[tuple[Callable[[StoreWriter], Any], bool, asyncio.Future[Any]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry-writer")
        self._is_busy = False
        self._is_closed = False
        self._idle: asyncio.Event | None = None

    async def run(self, operation: Callable[[StoreWriter], T], *, inline: bool) -> tuple[T, int]:
        """The result of `operation` after its commit, and the cache generation of this commit.

        Raises the error of `operation`, which then changes nothing.
        """
        if self._is_closed:
            raise StoreFailed("The registry is shutting down")
        if len(self._queue) >= _QUEUED_OPERATIONS_MAX:
            raise StoreFailed(f"More than {_QUEUED_OPERATIONS_MAX} changes are waiting for a commit")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[T, int]] = loop.create_future()
        self._queue.append((operation, inline, future))
        if not self._is_busy:
            # Start later, so that requests of the same event loop iteration share the batch.
            self._is_busy = True
            loop.call_soon(self._start_batch, loop)
        return await future

    def _start_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_OPERATIONS_MAX))]
        if not batch:
            self._is_busy = False
            if self._idle is not None:
                self._idle.set()
            return
        operations = [operation for operation, _, _ in batch]
        futures = [future for _, _, future in batch]
        if all(inline for _, inline, _ in batch):
            try:
                work = self._store.stage(operations).commit
            except Exception as error:
                self._deliver(loop, futures, _as_registry_error(error))
                return
            job = self._thread.submit(work)
        else:
            job = self._thread.submit(self._store.apply, operations)
        job.add_done_callback(lambda done: _call(loop, self._batch_done, loop, futures, done.exception(), done))

    def _batch_done(
        self,
        loop: asyncio.AbstractEventLoop,
        futures: list[asyncio.Future[Any]],
        error: BaseException | None,
        done: Any,
    ) -> None:
        self._deliver(loop, futures, done.result() if error is None else _as_registry_error(error))

    def _deliver(
        self,
        loop: asyncio.AbstractEventLoop,
        futures: list[asyncio.Future[Any]],
        outcome: BatchOutcome | RegistryError,
    ) -> None:
        if isinstance(outcome, RegistryError):
            results: tuple[Any, ...] = (outcome,) * len(futures)
            generation = 0
        else:
            results = outcome.results
            generation = self._committed(outcome.touched)
        for future, result in zip(futures, results, strict=True):
            if future.done():
                continue
            if isinstance(result, RegistryError):
                future.set_exception(result)
            else:
                future.set_result((result, generation))
        loop.call_soon(self._start_batch, loop)

    async def close(self) -> None:
        """Commits queued operations, then stops."""
        self._is_closed = True
        if self._is_busy:
            self._idle = asyncio.Event()
            await self._idle.wait()
        self._thread.shutdown()


def _as_registry_error(error: BaseException) -> RegistryError:
    return error if isinstance(error, RegistryError) else StoreFailed(f"The change failed: {error!r}")


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        return  # The event loop is closed.
