"""Time slices for long loops: other requests continue between them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

slice_seconds: Final = 0.005
"""How long a loop may keep the event loop. The latency of other requests grows by about as much."""
chunk_items: Final = 64
"""Items handled between two looks at the clock."""


async def chunks(items: Sequence[Item]) -> AsyncIterator[tuple[int, Sequence[Item]]]:
    """Runs of items, each with the index of its first one. Other tasks run when a slice is over."""
    ends = time.monotonic() + slice_seconds
    for start in range(0, len(items), chunk_items):
        if start and time.monotonic() > ends:
            await asyncio.sleep(0)
            ends = time.monotonic() + slice_seconds
        yield start, items[start : start + chunk_items]
