"""Bounded decompression of record batches: gzip, snappy, lz4 and zstd.

Every codec writes into memory that the caller provides and stops at its end. A small batch therefore cannot cause a
large allocation. The codecs release the GIL while they work.
"""

from collections.abc import Callable
from typing import Final

import cramjam

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES: Final = 16


class NotDecompressed(ValueError):
    """The bytes do not belong to the codec that the batch names."""


class OutOfRoom(Exception):
    """The target is too small. Its first `written` bytes hold the beginning of the data."""

    def __init__(self, written: int, needed: int | None = None) -> None:
        super().__init__(f"the data is larger than {written} bytes")
        self.written = written
        self.needed = needed
        """The size that would suffice, if the format tells it."""


def decompress_into(codec: int, data: memoryview, target: memoryview) -> int:
    """Returns the number of bytes written. `codec` is the low three bits of a batch's attributes.

    Raises `OutOfRoom` and `NotDecompressed`.
    """
    decompress = _CODECS.get(codec)
    if decompress is None:
        raise NotDecompressed(f"there is no compression codec {codec}")
    try:
        return decompress(data, target)
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise OutOfRoom(len(target)) from None
        raise NotDecompressed(str(error)) from None


def _snappy(data: memoryview, target: memoryview) -> int:
    """One raw block, or the framing of Java's snappy library: a header, then blocks prefixed by their length."""
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy_block(data, target, 0)
    written = 0
    at = XERIAL_HEADER_BYTES
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        at += 4
        if size > len(data) - at:
            raise NotDecompressed("a snappy block is truncated")
        written += _snappy_block(data[at : at + size], target[written:], written)
        at += size
    return written


def _snappy_block(block: memoryview, target: memoryview, written: int) -> int:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > len(target):
        raise OutOfRoom(written, written + size)
    return int(cramjam.snappy.decompress_raw_into(block, target))


_CODECS: Final[dict[int, Callable[[memoryview, memoryview], int]]] = {
    1: cramjam.gzip.decompress_into,
    2: _snappy,
    3: cramjam.lz4.decompress_into,
    4: cramjam.zstd.decompress_into,
}
