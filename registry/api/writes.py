"""One thread writes. Operations that arrive while it is busy are taken together and share one commit.

An operation is acknowledged when it is on disk, and answers that it made stale are dropped before that. Reading never
waits for this thread.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from registry.errors import RegistryError, StoreFailed
from registry.storage.base import BatchOutcome, RegistryStore, StoreWriter, Touched

T = TypeVar("T")

_BATCH_MAX: Final = 256
"""Operations in one commit. More would keep the first of them waiting longer than a commit takes."""
_WAITING_MAX: Final = 10_000
"""Operations in line; past that the store is slower than its clients and new ones are refused."""


class WriteQueue:
    def __init__(self, store: RegistryStore, committed: Callable[[Touched], int]) -> None:
        self._store = store
        self._committed = committed
        self._waiting: queue.SimpleQueue[tuple[Callable[[StoreWriter], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def run(self, operation: Callable[[StoreWriter], T]) -> tuple[T, int]:
        """What `operation` returns, once it is durable, and the generation of answers it belongs to.

        Or the error it raised, and nothing changed.
        """
        if self._closed:
            raise StoreFailed("The registry is shutting down")
        if self._waiting.qsize() >= _WAITING_MAX:
            raise StoreFailed(f"More than {_WAITING_MAX} changes wait to be written")
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write, name="registry-writer", daemon=True)
            self._thread.start()
        future: asyncio.Future[tuple[T, int]] = asyncio.get_running_loop().create_future()
        self._waiting.put((operation, future))
        return await future

    def _write(self) -> None:
        loop = self._loop
        assert loop is not None
        while (first := self._waiting.get()) is not None:
            batch = [first]
            stop = False
            while len(batch) < _BATCH_MAX and not self._waiting.empty():
                following = self._waiting.get()
                if following is None:
                    stop = True
                    break
                batch.append(following)
            outcome: BatchOutcome | RegistryError
            try:
                outcome = self._store.apply([operation for operation, _ in batch])
            except RegistryError as error:
                outcome = error
            except Exception as error:
                outcome = StoreFailed(f"The change could not be made: {error!r}")
            try:
                loop.call_soon_threadsafe(self._deliver, [future for _, future in batch], outcome)
            except RuntimeError:
                return  # The loop is gone, and with it everybody who waited.
            if stop:
                return

    def _deliver(self, futures: list[asyncio.Future[Any]], outcome: BatchOutcome | RegistryError) -> None:
        if isinstance(outcome, RegistryError):
            for future in futures:
                if not future.done():
                    future.set_exception(outcome)
            return
        generation = self._committed(outcome.touched)
        for future, result in zip(futures, outcome.results, strict=True):
            if future.done():
                continue
            if isinstance(result, RegistryError):
                future.set_exception(result)
            else:
                future.set_result((result, generation))

    async def close(self) -> None:
        """Write what is waiting, then stop."""
        self._closed = True
        if self._thread is not None:
            self._waiting.put(None)
            await asyncio.to_thread(self._thread.join)
