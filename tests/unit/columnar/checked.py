"""The plain engine on arrays that reject negative and out-of-range indexes.

Compiled code has no checks: a program with a wrong position would overwrite memory. Here it fails.
"""

from typing import Any

from headgate.serdes.columnar.kernels import decode_rows, encode_rows, frames, records


class Guarded:
    __slots__ = ("view",)

    def __init__(self, array: Any) -> None:
        self.view = memoryview(array)

    def __len__(self) -> int:
        return len(self.view)

    def _check(self, index: Any) -> None:
        if isinstance(index, slice):
            assert 0 <= index.start <= index.stop <= len(self.view), (index, len(self.view))
        else:
            assert 0 <= index < len(self.view), (index, len(self.view))

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return self.view[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        self.view[index] = value


def guarded(arguments: tuple[Any, ...]) -> list[Any]:
    return [argument if isinstance(argument, int) else Guarded(argument) for argument in arguments]


class Checked:
    """An `Engine`."""

    def decode_rows(self, *arguments: Any) -> int:
        return decode_rows.decode_rows(*guarded(arguments))

    def scan_frames(self, *arguments: Any) -> int:
        return frames.scan_frames(*guarded(arguments))

    def encode_rows(self, *arguments: Any) -> int:
        return encode_rows.encode_rows(*guarded(arguments))

    def scan_records(self, *arguments: Any) -> int:
        return records.scan_records(*guarded(arguments))

    def copy_spans(self, *arguments: Any) -> int:
        return records.copy_spans(*guarded(arguments))

    def find_headers(self, *arguments: Any) -> int:
        return records.find_headers(*guarded(arguments))

    def make_text(self, *arguments: Any) -> int:
        return records.make_text(*guarded(arguments))
