"""The records of a compressed batch, inflated within a bound: a small batch must not become a large allocation."""

from collections.abc import Callable
from typing import Protocol

import cramjam

from serdes.columnar.errors import ColumnarError

INFLATED_BYTES_MAX = 256 * 1024 * 1024
"""Of one batch. Brokers take 1 MiB by default, and text shrinks ten- or twentyfold: beyond this it is a bomb."""

GUESS_RATIO = 6
"""The first guess at how many times larger the records are; a wrong one costs another attempt, with four times that."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16

Bytes = bytes | memoryview


class NotInflated(ColumnarError):
    """The bytes are not of the codec they are said to be, or they are a bomb."""


class _Into(Protocol):
    def __call__(self, source: Bytes, target: bytearray, /) -> int: ...


def inflate(codec: int, data: memoryview) -> Bytes:
    """`codec` is the low three bits of a batch's attributes. Raises `NotInflated`."""
    if codec not in _CODECS:
        raise NotInflated(f"there is no compression {codec}")
    try:
        return _CODECS[codec](data)
    except cramjam.DecompressionError as error:
        raise NotInflated(str(error)) from None


def _growing(into: _Into) -> Callable[[memoryview], Bytes]:
    def inflated(data: memoryview) -> Bytes:
        size = max(GUESS_RATIO * len(data), 4096)
        while True:
            target = bytearray(min(size, INFLATED_BYTES_MAX))
            try:
                return memoryview(target)[: into(data, target)]
            except cramjam.DecompressionError as error:
                if "whole buffer" not in str(error) or size >= INFLATED_BYTES_MAX:
                    raise
            size *= 4

    return inflated


def _snappy(data: memoryview) -> Bytes:
    """One raw block, or Java's framing: a header, then blocks with their length before them."""
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy_block(data, INFLATED_BYTES_MAX)
    out = bytearray()
    at = XERIAL_HEADER_BYTES
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        at += 4
        if size > len(data) - at:
            raise NotInflated("a snappy block is cut off")
        out += _snappy_block(data[at : at + size], INFLATED_BYTES_MAX - len(out))
        at += size
    return bytes(out)


def _snappy_block(block: memoryview, bytes_max: int) -> Bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > bytes_max:
        raise NotInflated(f"{size} bytes in one snappy block")
    target = bytearray(size)
    return memoryview(target)[: cramjam.snappy.decompress_raw_into(block, target)]


_CODECS: dict[int, Callable[[memoryview], Bytes]] = {
    1: _growing(cramjam.gzip.decompress_into),
    2: _snappy,
    3: _growing(cramjam.lz4.decompress_into),
    4: _growing(cramjam.zstd.decompress_into),
}
