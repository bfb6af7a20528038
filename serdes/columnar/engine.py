"""The two ways to run the interpreter: as machine code where Numba is installed, as plain Python where it is not.

They are the same functions over the same memory, so their results cannot differ; the plain form is about eighty times
slower, which is still the pace of any row-wise decoder in Python.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

from headgate.serdes.columnar import encode_rows, frames, interpreter, records


class Engine(Protocol):
    """All functions take NumPy arrays."""

    def decode_rows(self, data: Any, starts: Any, ends: Any, skip: int, *arrays: Any) -> int: ...
    def scan_frames(self, *arrays: Any) -> int: ...
    def encode_rows(self, *arrays: Any) -> int: ...
    def scan_records(self, data: Any, sections: Any, first_offset: int, *arrays: Any) -> int: ...
    def copy_spans(self, *arrays: Any) -> int: ...
    def find_headers(self, *arrays: Any) -> int: ...
    def make_text(self, *arrays: Any) -> int: ...


class Plain:
    """Indexing a memoryview is several times faster than indexing an array, and yields Python's own numbers."""

    def decode_rows(self, data: Any, starts: Any, ends: Any, skip: int, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in (data, starts, ends, *arrays)]
        return interpreter.decode_rows(views[0], views[1], views[2], skip, *views[3:])

    def scan_frames(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return frames.scan_frames(*views)

    def encode_rows(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return encode_rows.encode_rows(*views)

    def scan_records(self, data: Any, sections: Any, first_offset: int, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in (data, sections, *arrays)]
        return records.scan_records(views[0], views[1], first_offset, *views[2:])

    def copy_spans(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return records.copy_spans(*views)

    def find_headers(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return records.find_headers(*views)

    def make_text(self, *arrays: Any) -> int:
        views: list[Any] = [memoryview(array) for array in arrays]
        return records.make_text(*views)


class Compiled:
    """Each function is loaded from Numba's cache, or compiled, when it is first called."""

    def decode_rows(self, *arguments: Any) -> int:
        return int(_compiled().decode_rows()(*arguments))

    def scan_frames(self, *arguments: Any) -> int:
        return int(_compiled().scan_frames()(*arguments))

    def encode_rows(self, *arguments: Any) -> int:
        return int(_compiled().encode_rows()(*arguments))

    def scan_records(self, *arguments: Any) -> int:
        return int(_compiled().scan_records()(*arguments))

    def copy_spans(self, *arguments: Any) -> int:
        return int(_compiled().copy_spans()(*arguments))

    def find_headers(self, *arguments: Any) -> int:
        return int(_compiled().find_headers()(*arguments))

    def make_text(self, *arguments: Any) -> int:
        return int(_compiled().make_text()(*arguments))


@cache
def _compiled() -> Any:
    """Imported late: it needs Numba."""
    from headgate.serdes.columnar import compiled

    return compiled


@cache
def default_engine() -> Engine:
    return Compiled() if find_spec("numba") is not None else Plain()
