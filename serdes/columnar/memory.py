"""Arrays over memory of Arrow's pool.

The pool keeps what was freed and hands it out again, already mapped. For the arrays of a batch that is several times
faster than fresh pages from the operating system, which have to be faulted in one by one.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

Number = TypeVar("Number", bound=np.generic)


def empty(count: int, kind: type[Number]) -> NDArray[Number]:
    """An array of anything; at least one element is allocated, so that its address is valid."""
    memory = pa.allocate_buffer(max(count, 1) * np.dtype(kind).itemsize)
    return np.frombuffer(memory, kind)[:count]
