"""Runs the kernels: as machine code if Numba is installed, otherwise as plain Python.

Both engines run the same functions on the same memory, so their results are equal. Plain Python is about 80 times
slower, which is the speed of a row-wise decoder in Python.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

from headgate.serdes.columnar.kernels import decode_rows, encode_rows, frames, records


class Engine(Protocol):
    """The kernels. Arguments are NumPy arrays and integers."""

    def decode_rows(self, *arguments: Any) -> int: ...
    def scan_frames(self, *arguments: Any) -> int: ...
    def encode_rows(self, *arguments: Any) -> int: ...
    def scan_records(self, *arguments: Any) -> int: ...
    def copy_spans(self, *arguments: Any) -> int: ...
    def find_headers(self, *arguments: Any) -> int: ...
    def make_text(self, *arguments: Any) -> int: ...


class Plain:
    """Runs the kernels as plain Python."""

    def decode_rows(self, *arguments: Any) -> int:
        return decode_rows.decode_rows(*_views(arguments))

    def scan_frames(self, *arguments: Any) -> int:
        return frames.scan_frames(*_views(arguments))

    def encode_rows(self, *arguments: Any) -> int:
        return encode_rows.encode_rows(*_views(arguments))

    def scan_records(self, *arguments: Any) -> int:
        return records.scan_records(*_views(arguments))

    def copy_spans(self, *arguments: Any) -> int:
        return records.copy_spans(*_views(arguments))

    def find_headers(self, *arguments: Any) -> int:
        return records.find_headers(*_views(arguments))

    def make_text(self, *arguments: Any) -> int:
        return records.make_text(*_views(arguments))


class Compiled:
    """Runs machine code. The first call of a kernel loads it from Numba's cache or compiles it."""

    def decode_rows(self, *arguments: Any) -> int:
        return int(_compiled("decode_rows")(*arguments))

    def scan_frames(self, *arguments: Any) -> int:
        return int(_compiled("scan_frames")(*arguments))

    def encode_rows(self, *arguments: Any) -> int:
        return int(_compiled("encode_rows")(*arguments))

    def scan_records(self, *arguments: Any) -> int:
        return int(_compiled("scan_records")(*arguments))

    def copy_spans(self, *arguments: Any) -> int:
        return int(_compiled("copy_spans")(*arguments))

    def find_headers(self, *arguments: Any) -> int:
        return int(_compiled("find_headers")(*arguments))

    def make_text(self, *arguments: Any) -> int:
        return int(_compiled("make_text")(*arguments))


def _views(arguments: tuple[Any, ...]) -> list[Any]:
    """Indexing a memoryview is several times faster than indexing a NumPy array, and returns Python numbers."""
    return [argument if isinstance(argument, int) else memoryview(argument) for argument in arguments]


@cache
def _compiled(kernel: str) -> Any:
    from headgate.serdes.columnar.native import compiled  # needs Numba

    return compiled.kernel(kernel)


@cache
def default_engine() -> Engine:
    return Compiled() if find_spec("numba") is not None else Plain()
