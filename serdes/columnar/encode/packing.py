"""Copies Arrow columns, including slices, into flat buffers for the encoding kernel."""

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.memory import ALIGNMENT_BYTES, empty


class Packing:
    """Collects buffers, then copies them into one block."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint8]] = []
        self._units: list[int] = []

    def _add(self, part: NDArray[np.generic], unit: int) -> int:
        self._parts.append(part.view(np.uint8))
        self._units.append(unit)
        return len(self._parts) - 1

    def validity(self, array: pa.Array) -> int:
        return self._add(array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8), 1)

    def booleans(self, array: pa.Array) -> int:
        return self.cells(array.cast(pa.uint8()), 1)

    def cells(self, array: pa.Array, width: int) -> int:
        """Numbers. The unit of positions is their width."""
        return self._add(_values(array, width), width)

    def raw(self, array: pa.Array, width: int) -> int:
        """Fixed and decimals. The unit of positions is a byte."""
        return self._add(_values(array, width), 1)

    def text(self, array: pa.Array) -> tuple[int, int]:
        offsets = _offsets(array)
        data = array.buffers()[2]
        first = int(offsets[0])
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return self._add(offsets - first, 4), self._add(content[first : int(offsets[-1])], 1)

    def list_offsets(self, array: pa.Array) -> tuple[int, int, int]:
        """The number of the offsets buffer, and the range of items."""
        offsets = _offsets(array)
        first = int(offsets[0])
        return self._add(offsets - first, 4), first, int(offsets[-1])

    def symbols(self, array: pa.Array, symbols: tuple[str, ...]) -> int:
        """The index of each symbol, -1 for an unknown symbol."""
        places = {symbol: number for number, symbol in enumerate(symbols)}
        coded = array.dictionary_encode()
        numbers = np.array([places.get(symbol, -1) for symbol in coded.dictionary.to_pylist()] or [-1], np.int32)
        return self._add(numbers[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)], 4)

    def laid_out(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The block, and the position of each buffer in its unit."""
        starts: list[int] = []
        total = 0
        for part in self._parts:
            starts.append(total)
            total += -(-part.size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        block = empty(total + ALIGNMENT_BYTES, np.uint8)
        for start, part in zip(starts, self._parts, strict=True):
            block[start : start + part.size] = part
        places = [start // unit for start, unit in zip(starts, self._units, strict=True)]
        return block, np.array(places or [0], np.int64)


def _values(array: pa.Array, width: int) -> NDArray[np.uint8]:
    data = array.buffers()[1]
    if data is None or width == 0:
        return np.zeros(len(array) * width, np.uint8)
    return np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]


def _offsets(array: pa.Array) -> NDArray[np.int32]:
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(data, np.int32)[array.offset : array.offset + len(array) + 1]
