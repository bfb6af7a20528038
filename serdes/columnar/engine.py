"""The two ways to run the interpreter: as machine code where Numba is installed, as plain Python where it is not.

They are the same functions over the same memory, so their results cannot differ; the plain form is about eighty times
slower, which is still the pace of any row-wise decoder in Python.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

from serdes.columnar import frames, interpreter


class Engine(Protocol):
    """Both functions take NumPy arrays."""

    def decode_rows(self, *arrays: Any) -> int: ...
    def scan_frames(self, *arrays: Any) -> int: ...


class Plain:
    """Indexing a memoryview is several times faster than indexing an array, and yields Python's own numbers."""

    def decode_rows(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return interpreter.decode_rows(*views)

    def scan_frames(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return frames.scan_frames(*views)


class Compiled:
    """The code is loaded, or compiled, when an object of this class is first made."""

    def __init__(self) -> None:
        from serdes.columnar import compiled

        self.decode_rows: Callable[..., int] = compiled.decode_rows()
        self.scan_frames: Callable[..., int] = compiled.scan_frames()


@cache
def default_engine() -> Engine:
    return Compiled() if find_spec("numba") is not None else Plain()
