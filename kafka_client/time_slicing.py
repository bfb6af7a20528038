"""Time slices for long loops. Other tasks on the event loop run between two slices."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

SLICE_SECONDS: Final = 0.005
"""How long a loop may block the event loop. The latency of other requests grows by about this time."""
CHUNK_ITEMS: Final = 64
"""Number of items between two clock reads."""


async def chunks(items: Sequence[Item]) -> AsyncIterator[tuple[int, Sequence[Item]]]:
    """Yields chunks of items, each with the index of its first item. Other tasks run at the end of a time slice."""
    ends = time.monotonic() + SLICE_SECONDS
    for start in range(0, len(items), CHUNK_ITEMS):
        if start and time.monotonic() > ends:
            await asyncio.sleep(0)
            ends = time.monotonic() + SLICE_SECONDS
        yield start, items[start : start + CHUNK_ITEMS]
