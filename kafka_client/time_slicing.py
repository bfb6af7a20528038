"""Time slices for long loops: other requests continue between them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

SLICE_SECONDS: Final = 0.005
"""How long a loop may keep the event loop. The latency of other requests grows by about as much."""
CHUNK_ITEMS: Final = 64
"""Items handled between two looks at the clock."""


async def chunks(items: Sequence[Item]) -> AsyncIterator[tuple[int, Sequence[Item]]]:
    """Runs of items, each with the index of its first one. Other tasks run when a slice is over."""
    ends = time.monotonic() + SLICE_SECONDS
    for start in range(0, len(items), CHUNK_ITEMS):
        if start and time.monotonic() > ends:
            await asyncio.sleep(0)
            ends = time.monotonic() + SLICE_SECONDS
        yield start, items[start : start + CHUNK_ITEMS]
