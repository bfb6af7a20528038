"""One writer. Operations that arrive while a commit is on its way are taken together and share the next one.

An operation is acknowledged when it is on disk, and answers that it made stale are dropped before that. Light
operations run on the event loop, where nothing else competes for the interpreter, and only their commit runs in the
writing thread; a batch with a long one runs there whole. Reading never waits for either.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from headgate.registry.errors import RegistryError, StoreFailed
from headgate.registry.storage.base import BatchOutcome, RegistryStore, StoreWriter, Touched

T = TypeVar("T")

_BATCH_MAX: Final = 64
"""Operations in one commit. Light ones of a batch keep the event loop busy together: some ten milliseconds."""
_WAITING_MAX: Final = 10_000
"""Operations in line; past that the store is slower than its clients and new ones are refused."""


class WriteQueue:
    def __init__(self, store: RegistryStore, committed: Callable[[Touched], int]) -> None:
        self._store = store
        self._committed = committed
        self._waiting: deque[tuple[Callable[[StoreWriter], Any], bool, asyncio.Future[Any]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry-writer")
        self._busy = False
        self._closed = False
        self._idle: asyncio.Event | None = None

    async def run(self, operation: Callable[[StoreWriter], T], *, light: bool) -> tuple[T, int]:
        """What `operation` returns, once it is durable, and the generation of answers it belongs to.

        Or the error it raised, and nothing changed.
        """
        if self._closed:
            raise StoreFailed("The registry is shutting down")
        if len(self._waiting) >= _WAITING_MAX:
            raise StoreFailed(f"More than {_WAITING_MAX} changes wait to be written")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[T, int]] = loop.create_future()
        self._waiting.append((operation, light, future))
        if not self._busy:
            # Not at once: requests that are being read now shall be in the same batch.
            self._busy = True
            loop.call_soon(self._start, loop)
        return await future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the next batch, if any."""
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH_MAX))]
        if not batch:
            self._busy = False
            if self._idle is not None:
                self._idle.set()
            return
        operations = [operation for operation, _, _ in batch]
        futures = [future for _, _, future in batch]
        if all(light for _, light, _ in batch):
            try:
                work = self._store.stage(operations).commit
            except Exception as error:
                self._deliver(loop, futures, _refusal(error))
                return
            job = self._thread.submit(work)
        else:
            job = self._thread.submit(self._store.apply, operations)
        job.add_done_callback(lambda done: _call(loop, self._done, loop, futures, done.exception(), done))

    def _done(
        self,
        loop: asyncio.AbstractEventLoop,
        futures: list[asyncio.Future[Any]],
        error: BaseException | None,
        done: Any,
    ) -> None:
        self._deliver(loop, futures, done.result() if error is None else _refusal(error))

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
        loop.call_soon(self._start, loop)

    async def close(self) -> None:
        """Write what is waiting, then stop."""
        self._closed = True
        if self._busy:
            self._idle = asyncio.Event()
            await self._idle.wait()
        self._thread.shutdown()


def _refusal(error: BaseException) -> RegistryError:
    return error if isinstance(error, RegistryError) else StoreFailed(f"The change could not be made: {error!r}")


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        return  # The loop is gone, and with it everybody who waited.
