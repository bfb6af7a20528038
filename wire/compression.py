"""Bounded decompression of record batches: gzip, snappy, lz4 and zstd.

Every codec writes into a buffer of fixed size and stops at its end, so a small batch cannot cause a large allocation.
The codecs release the GIL, so a thread can decompress while the event loop runs.
"""

import mmap
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import cramjam

from headgate.wire.buffer import Buffer
from headgate.wire.errors import DecompressedTooLarge, DecompressionFailed, TargetTooSmall, WireError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
"""Codecs: the lowest three bits of a batch's attributes."""

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Brokers accept batches up to `max.message.bytes` (1 MiB by default), and text compresses 10 to 20 times. A batch that
decompresses to more is a decompression bomb."""
FIRST_BUFFER_BYTES_MIN: Final = 64 * 1024
FIRST_BUFFER_RATIO: Final = 8
"""First guess of the compression ratio. The second attempt uses the limit: unused pages of a mapping cost nothing."""
HEAP_BUFFER_BYTES_MAX: Final = 1024 * 1024
"""Larger buffers are anonymous mappings, because clearing 128 MiB on the heap holds the GIL."""

_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_BUFFER_IS_FULL: Final = "failed to write whole buffer"
"""cramjam reports a full buffer only with this message of Rust's standard library."""


def decompress_into(codec: int, data: Buffer, target: memoryview) -> int:
    """Returns the number of bytes written. Raises TargetTooSmall, DecompressionFailed."""
    decompress_codec = _CODECS.get(codec)
    if decompress_codec is None:
        raise DecompressionFailed(f"compression codec {codec} does not exist")
    try:
        return decompress_codec(data, target)
    except cramjam.DecompressionError as error:
        if str(error) == _BUFFER_IS_FULL:
            raise TargetTooSmall(len(target)) from None
        raise DecompressionFailed(f"invalid {_NAMES[codec]} data: {error}") from None


def decompress(codec: int, data: Buffer, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """The decompressed bytes; `data` itself if `codec` is NONE. Raises DecompressionFailed."""
    if codec == NONE:
        return data
    if codec == SNAPPY:
        capacity = _snappy_size(memoryview(data))
        if capacity > limit_bytes:
            raise DecompressedTooLarge(limit_bytes)
    else:
        capacity = min(max(FIRST_BUFFER_BYTES_MIN, FIRST_BUFFER_RATIO * len(data)), limit_bytes)
    while True:
        buffer = bytearray(capacity) if capacity <= HEAP_BUFFER_BYTES_MAX else mmap.mmap(-1, capacity)
        try:
            with memoryview(buffer) as target:
                size = decompress_into(codec, data, target)
            return memoryview(buffer)[:size]
        except WireError as error:
            del buffer  # the traceback must not keep the memory
            if not isinstance(error, TargetTooSmall):
                raise
            if capacity >= limit_bytes:
                raise DecompressedTooLarge(limit_bytes) from None
            capacity = limit_bytes


def _snappy(data: Buffer, target: memoryview) -> int:
    written = 0
    for block in _snappy_blocks(memoryview(data)):
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(target) - written:
            raise TargetTooSmall(written, written + size)
        written += int(cramjam.snappy.decompress_raw_into(block, target[written:]))
    return written


def _snappy_size(data: memoryview) -> int:
    try:
        return sum(cramjam.snappy.decompress_raw_len(block) for block in _snappy_blocks(data))
    except cramjam.DecompressionError as error:
        raise DecompressionFailed(f"invalid snappy data: {error}") from None


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """The data as one raw block, or the blocks in the framing of snappy-java (xerial): a header, then sized blocks."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield data
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[position:start])
        if start > len(data) or position > len(data):
            raise DecompressionFailed("a snappy block is truncated")
        yield data[start:position]


_CODECS: Final[Mapping[int, Callable[[Buffer, memoryview], int]]] = {
    GZIP: cramjam.gzip.decompress_into,
    SNAPPY: _snappy,
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}
