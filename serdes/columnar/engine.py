"""Runs the kernels as machine code or as plain Python.

All engines run the same functions on the same memory, so their results are equal. Plain Python is about 80 times
slower, which is the speed of a row-wise decoder in Python.
"""

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from headgate.serdes.columnar.kernels import decode_rows, encode_rows, frames, records
from headgate.serdes.columnar.native.library import LIBRARY, CodeLibrary

PLAIN_ROWS: Final = 500
PLAIN_BYTES: Final = 16 * 1024
"""Rows, and bytes of their payloads, that plain Python processes before it checks again for machine code: about ten
milliseconds. A single row can be larger and take seconds."""
DONE: Final = 0
"""The result of `decode_rows` and `encode_rows` after the last row."""

ShippedCode: TypeAlias = tuple[tuple[str, bytes], ...]
"""Kernels and their compiled code with a checksum."""


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
    """Runs machine code, and waits for the compiler if necessary. Raises `NotCompiled` if it fails."""

    def decode_rows(self, *arguments: Any) -> int:
        return LIBRARY.wait("decode_rows")(*arguments)

    def scan_frames(self, *arguments: Any) -> int:
        return LIBRARY.wait("scan_frames")(*arguments)

    def encode_rows(self, *arguments: Any) -> int:
        return LIBRARY.wait("encode_rows")(*arguments)

    def scan_records(self, *arguments: Any) -> int:
        return LIBRARY.wait("scan_records")(*arguments)

    def copy_spans(self, *arguments: Any) -> int:
        return LIBRARY.wait("copy_spans")(*arguments)

    def find_headers(self, *arguments: Any) -> int:
        return LIBRARY.wait("find_headers")(*arguments)

    def make_text(self, *arguments: Any) -> int:
        return LIBRARY.wait("make_text")(*arguments)


class Adaptive:
    """Runs plain Python until machine code is available. It never waits for the compiler.

    The kernels that take most of the time process rows one by one. Between rows, they switch to machine code.
    """

    def __init__(self, library: CodeLibrary = LIBRARY) -> None:
        self._library = library
        self._plain = Plain()

    def decode_rows(self, *arguments: Any) -> int:
        _, starts, ends, *_ = arguments
        return self._by_row("decode_rows", decode_rows.SLOTS_AT, arguments, ends - starts)

    def scan_frames(self, *arguments: Any) -> int:
        return (self._library.get("scan_frames") or self._plain.scan_frames)(*arguments)

    def encode_rows(self, *arguments: Any) -> int:
        return self._by_row("encode_rows", encode_rows.REASONS_AT, arguments)

    def scan_records(self, *arguments: Any) -> int:
        return (self._library.get("scan_records") or self._plain.scan_records)(*arguments)

    def copy_spans(self, *arguments: Any) -> int:
        return (self._library.get("copy_spans") or self._plain.copy_spans)(*arguments)

    def find_headers(self, *arguments: Any) -> int:
        return (self._library.get("find_headers") or self._plain.find_headers)(*arguments)

    def make_text(self, *arguments: Any) -> int:
        return (self._library.get("make_text") or self._plain.make_text)(*arguments)

    def _by_row(self, kernel: str, rows_at: int, arguments: tuple[Any, ...], sizes: Any = None) -> int:
        """Run a kernel that continues at row `progress[0]`. The array at `rows_at` has one cell for each row.

        `sizes` are the bytes of the rows, if known.
        """
        rows, progress = arguments[rows_at], arguments[-1]
        plain = getattr(self._plain, kernel)
        while (machine := self._library.get(kernel)) is None:
            start = int(progress[0])
            end = min(start + PLAIN_ROWS, len(rows))
            if sizes is not None:
                fitting = int(np.searchsorted(np.cumsum(sizes[start:end]), PLAIN_BYTES, "right"))
                end = min(start + max(fitting, 1), end)
            status = int(plain(*arguments[:rows_at], rows[:end], *arguments[rows_at + 1 :]))
            if status != DONE or end == len(rows):
                return status
        return machine(*arguments)


def _views(arguments: tuple[Any, ...]) -> list[Any]:
    """Indexing a memoryview is several times faster than indexing a NumPy array, and returns Python numbers."""
    return [argument if isinstance(argument, int) else memoryview(argument) for argument in arguments]


@cache
def default_engine() -> Engine:
    return Adaptive() if find_spec("llvmlite") is not None else Plain()


def code_to_ship(kernels: Iterable[str]) -> ShippedCode:
    """The compiled code of these kernels, for other processes. Empty if it is not compiled yet."""
    return LIBRARY.sealed(kernels) if isinstance(default_engine(), Adaptive) else ()


def use_shipped(code: ShippedCode) -> None:
    """Use the compiled code of another process. Code that does not fit this process is ignored."""
    if isinstance(default_engine(), Adaptive):
        for kernel, sealed in code:
            LIBRARY.link(kernel, sealed)
