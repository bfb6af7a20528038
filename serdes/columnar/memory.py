"""Arrays in memory of Arrow's pool, and conversions between Arrow and NumPy.

The pool reuses freed memory that is already mapped. This is several times faster than new pages from the operating
system, which cause one page fault each.
"""

from typing import Any, Final, TypeVar

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


def as_arrow(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """The numbers as an Arrow array, without a copy.

    Unlike `pa.array` and `Array.to_numpy`, the conversions in this module do not import pandas, which takes 0.4 s.
    """
    validity = None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(np.ascontiguousarray(values))])


def is_valid(array: pa.Array) -> NDArray[np.bool_]:
    """Whether each element is not null."""
    bitmap = array.buffers()[0] if array.null_count else None
    if bitmap is None:
        return np.full(len(array), array.null_count == 0)
    bits = np.frombuffer(bitmap, np.uint8)[: (array.offset + len(array) + 7) // 8]
    return np.unpackbits(bits, bitorder="little")[array.offset : array.offset + len(array)].view(np.bool_)
