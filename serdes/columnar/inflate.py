"""The records of compressed batches, inflated one behind the other within a bound.

A small batch must not become a large allocation: codecs write into the room that is left, and stop at its end.
"""

from collections.abc import Callable

import cramjam
import numpy as np
from numpy.typing import NDArray

from serdes.columnar.errors import BatchTooLarge, ColumnarError
from serdes.columnar.memory import empty

INFLATED_BYTES_MAX = 256 * 1024 * 1024
"""Of one batch. Brokers take 1 MiB by default, and text shrinks ten- or twentyfold: beyond this it is a bomb."""

RECORDS_BYTES_MAX = 2**31 - 1
"""Of all batches of one call: Arrow's offsets count them in 32 bits."""

GUESS_RATIO = 16
"""The first guess at how many times larger the records are. Pages that are not written to cost nothing."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16

Bytes = bytes | memoryview


class NotInflated(ColumnarError):
    """The bytes are not of the codec they are said to be, or they are a bomb."""


class Inflated:
    """Records one behind the other in one block, which doubles where it is too small."""

    def __init__(self, compressed_bytes: int) -> None:
        self._block = empty(min(GUESS_RATIO * compressed_bytes + 4096, RECORDS_BYTES_MAX), np.uint8)
        self.size = 0

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._block[: self.size]

    def add(self, codec: int, records: memoryview) -> None:
        """`codec` is the low three bits of a batch's attributes. Raises `NotInflated`, and adds nothing then."""
        if codec == 0:
            self._reserve(len(records))
            self._block[self.size : self.size + len(records)] = np.frombuffer(records, np.uint8)
            self.size += len(records)
            return
        if codec not in _CODECS:
            raise NotInflated(f"there is no compression {codec}")
        try:
            self.size += self._inflate(_CODECS[codec], records)
        except cramjam.DecompressionError as error:
            raise NotInflated(str(error)) from None

    def _inflate(self, into: Callable[[memoryview, memoryview], int], records: memoryview) -> int:
        self._reserve(min(GUESS_RATIO * len(records), INFLATED_BYTES_MAX))
        while True:
            room = min(len(self._block) - self.size, INFLATED_BYTES_MAX)
            try:
                return into(records, self._block.data[self.size : self.size + room])
            except cramjam.DecompressionError as error:
                if "whole buffer" not in str(error) or room == INFLATED_BYTES_MAX:
                    raise
            self._reserve(min(2 * room + 4096, INFLATED_BYTES_MAX))

    def _reserve(self, room: int) -> None:
        needed = self.size + room
        if needed <= len(self._block):
            return
        if needed > RECORDS_BYTES_MAX:
            raise BatchTooLarge(f"{needed} bytes of records in one call; Arrow's offsets end at 2^31")
        larger = empty(min(max(2 * len(self._block), needed), RECORDS_BYTES_MAX), np.uint8)
        larger[: self.size] = self.data
        self._block = larger


def _snappy(records: memoryview, target: memoryview) -> int:
    """One raw block, or Java's framing: a header, then blocks with their length before them."""
    if bytes(records[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy_block(records, target)
    written = 0
    at = XERIAL_HEADER_BYTES
    while at < len(records):
        size = int.from_bytes(records[at : at + 4])
        at += 4
        if size > len(records) - at:
            raise NotInflated("a snappy block is cut off")
        written += _snappy_block(records[at : at + size], target[written:])
        at += size
    return written


def _snappy_block(block: memoryview, target: memoryview) -> int:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > len(target):
        raise cramjam.DecompressionError("failed to write whole buffer")
    return int(cramjam.snappy.decompress_raw_into(block, target))


_CODECS: dict[int, Callable[[memoryview, memoryview], int]] = {
    1: cramjam.gzip.decompress_into,
    2: _snappy,
    3: cramjam.lz4.decompress_into,
    4: cramjam.zstd.decompress_into,
}
