"""Limits the memory of all reads of a worker.

Each stream or page has a `Share`. It reserves memory before a fetch and releases it when the client has read the rows.
At the limit, pages end early and other streams wait. The worker then disconnects clients that read no data for
`SLOW_SECONDS`, starting with the longest wait. Otherwise slow clients would block all others. A disconnected client can
resume at its offset.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

SLOW_SECONDS: Final = 5.0
"""Clients that read their data within this time are never disconnected."""
STEP_BYTES: Final = 4 * 1024 * 1024
"""Initial reservation: a fetch of 1 MiB, a prefetched one, and rows twice as large. The fetched size replaces it."""
RECHECK_SECONDS: Final = 0.5

_log: Final = logging.getLogger(__name__)


class TooSlow(Exception):
    """The client reads too slowly, and other reads need the memory."""


class StreamMemory:
    def __init__(self, bytes_max: int, slow_seconds: float = SLOW_SECONDS) -> None:
        self._bytes_max = bytes_max
        self._slow_seconds = slow_seconds
        self._freed = asyncio.Event()
        self._blocked: dict[Share, tuple[float, asyncio.Timeout]] = {}
        """Start time and timeout of the shares that wait for their client. The longest wait is first."""
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        return self.bytes >= self._bytes_max

    def share(self) -> "Share":
        return Share(self)

    async def wait_for_room(self) -> None:
        while self.is_full:
            self._disconnect_slowest()
            self._freed.clear()
            try:
                async with asyncio.timeout(RECHECK_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                continue

    def resized(self, by: int) -> None:
        self.bytes += by
        if by < 0:
            self._freed.set()

    @asynccontextmanager
    async def sending(self, share: "Share") -> AsyncIterator[None]:
        """Raises TooSlow."""
        try:
            async with asyncio.timeout(None) as waiting:
                self._blocked[share] = (time.monotonic(), waiting)
                yield
        except TimeoutError:
            raise TooSlow from None
        finally:
            self._blocked.pop(share, None)

    def _disconnect_slowest(self) -> None:
        slowest = next(iter(self._blocked.items()), None)
        if slowest is None:
            return
        share, (since, waiting) = slowest
        if time.monotonic() - since >= self._slow_seconds:
            del self._blocked[share]
            waiting.reschedule(asyncio.get_running_loop().time())
            _log.warning(
                "a client took no data for %.0f s and was disconnected: all streams and pages together hold %d bytes",
                time.monotonic() - since,
                self.bytes,
            )


class Share:
    """Memory of one stream or page."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: StreamMemory) -> None:
        self._memory = memory
        self._size = 0

    async def reserve(self) -> None:
        """Waits until memory is free, unless this share already has a reservation."""
        if not self._size:
            await self._memory.wait_for_room()
            self.resize(STEP_BYTES)

    def resize(self, size: int) -> None:
        by, self._size = size - self._size, size
        if by:
            self._memory.resized(by)

    def sending(self) -> AbstractAsyncContextManager[None]:
        """Context of a write to the client. Raises TooSlow."""
        return self._memory.sending(self)
