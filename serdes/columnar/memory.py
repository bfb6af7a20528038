"""Arrays in memory of Arrow's pool.

The pool reuses freed memory that is already mapped. This is several times faster than new pages from the operating
system, which cause one page fault each.
"""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

ALIGNMENT_BYTES: Final = 64
"""Arrow's recommended alignment of buffers."""

Number = TypeVar("Number", bound=np.generic)


def empty(count: int, kind: type[Number]) -> NDArray[Number]:
    """An uninitialized array. Allocates at least one element, so that the address is valid."""
    memory = pa.allocate_buffer(max(count, 1) * np.dtype(kind).itemsize)
    return np.frombuffer(memory, kind)[:count]
