"""Buffer for reports of produce streams that their clients have not read yet.

A client may send all its records before it reads the first report. If the proxy stopped reading records until it can
send reports, both sides would deadlock. The proxy therefore buffers reports, up to a limit for all streams of a worker.
At the limit, it stops reading records (backpressure). It then disconnects clients that read no reports for a while.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

own_bytes_max: Final = 256 * 1024
"""Each stream may buffer this many bytes even at the limit of all streams."""
piece_bytes_max: Final = 16 * 1024
"""Size of one write. A client that reads one piece within the time limit stays connected."""


class ClientStalled(Exception):
    """The client reads no reports, and the stream cannot continue until it does."""


class ReportMemory:
    """Counts the buffered bytes of all streams of a worker."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._freed = asyncio.Event()
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        return self.bytes >= self._bytes_max

    def resize(self, by: int) -> None:
        self.bytes += by
        if by < 0 and not self.is_full:
            self._freed.set()

    async def wait_for_room(self) -> None:
        while self.is_full:
            self._freed.clear()
            await self._freed.wait()


class ReportBuffer:
    """Queue of one stream's reports, between the task that creates them and the task that sends them."""

    def __init__(self, memory: ReportMemory, stall_seconds: float) -> None:
        self._memory = memory
        self._stall_seconds = stall_seconds
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._is_waiting = False
        """True while the stream waits for free memory and reads no records."""
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._sending: asyncio.Timeout | None = None

    @property
    def _is_over_limit(self) -> bool:
        return self._memory.is_full and self._size > own_bytes_max

    async def put(self, lines: bytes) -> None:
        """Adds reports. Returns when the buffer accepts more."""
        self._pieces.extend(lines[at : at + piece_bytes_max] for at in range(0, len(lines), piece_bytes_max))
        self._resize(len(lines))
        self._changed.set()
        if self._is_over_limit:
            self._is_waiting = True
            self._limit_sending()
            try:
                await self._wait_for_room()
            finally:
                self._is_waiting = False
                self._limit_sending()

    def end(self) -> None:
        self._ended = True
        self._changed.set()
        self._limit_sending()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields all pieces until `end`."""
        while True:
            while not self._pieces:
                if self._ended:
                    return
                self._changed.clear()
                await self._changed.wait()
            piece = self._pieces[0]
            yield piece
            self._pieces.popleft()
            self._resize(-len(piece))
            self._taken.set()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Context of a write to the client. Raises ClientStalled."""
        try:
            async with asyncio.timeout(None) as self._sending:
                self._limit_sending()
                yield
        except TimeoutError:
            raise ClientStalled(
                f"The client took no reports for {self._stall_seconds:g} s while {self._size} bytes were waiting."
            ) from None
        finally:
            self._sending = None

    def clear(self) -> None:
        """Releases the memory after the end of the stream."""
        self._pieces.clear()
        self._resize(-self._size)

    def _resize(self, by: int) -> None:
        self._size += by
        self._memory.resize(by)

    async def _wait_for_room(self) -> None:
        while self._is_over_limit:
            self._taken.clear()
            waits = {asyncio.ensure_future(self._taken.wait()), asyncio.ensure_future(self._memory.wait_for_room())}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def _limit_sending(self) -> None:
        """Sets the time limit of a write. It applies only after the end, or while the stream waits for memory."""
        if self._sending is not None:
            is_limited = self._ended or self._is_waiting
            now = asyncio.get_running_loop().time()
            self._sending.reschedule(now + self._stall_seconds if is_limited else None)
