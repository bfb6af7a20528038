"""Threads that decompress record batches without blocking the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

BATCH_BYTES_MAX: Final = 128 * 1024 * 1024
"""Maximum decompressed size of a batch. The embedded broker has the same limit."""
THREADS: Final = 2
"""Each thread may hold a buffer of `batch_bytes_max` bytes, so the number of threads limits the memory."""

Result = TypeVar("Result")


class Decompression:
    def __init__(self, batch_bytes_max: int = BATCH_BYTES_MAX, record_bytes_max: int | None = None) -> None:
        """`record_bytes_max` limits each record of a compressed batch. None allows up to `batch_bytes_max`."""
        self.batch_bytes_max = batch_bytes_max
        self.record_bytes_max = record_bytes_max
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="decompression")

    async def run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
