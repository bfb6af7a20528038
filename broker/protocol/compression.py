"""Decompression of record batches, bounded: a small batch must not become a large allocation.

Only cold paths come here (lookups by time, topics whose settings ask for a look at the records); on the hot path a
compressed batch passes through as it is. The codecs release the interpreter lock, so a thread can decompress large
batches while the event loop runs. Large buffers are anonymous mappings for the same reason: filling or copying 128 MiB
would hold the lock.
"""

import mmap
from collections.abc import Callable

import cramjam

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

# A batch is at most `max.message.bytes` (1 MiB by default) on the wire. Text compresses some 10-20 times; what
# inflates past this is a bomb, not a batch.
decompressed_bytes_max = 128 * 1024 * 1024

# The first guess at the inflated size. The second is the limit: pages of a mapping cost nothing until they are written.
first_guess_bytes = 64 * 1024

# Larger buffers are mappings. Smaller ones cost less from the heap.
heap_buffer_bytes_max = 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


# What cramjam says when the buffer is full: the message of Rust's standard library for a write that came to an end.
_BUFFER_IS_FULL = "failed to write whole buffer"


class DecompressionFailed(Exception):
    """The bytes are not what the codec in the batch's attributes says, or they inflate past the limit."""


class InflatesPastLimit(DecompressionFailed):
    """Sound as far as it was inflated, and larger than it may be."""


def decompress(codec: int, data: bytes | memoryview, limit_bytes: int = decompressed_bytes_max) -> bytes | memoryview:
    """Inflate the records part of a batch; `codec` is the low three bits of its attributes."""
    if codec == 0:
        return data
    inflate = _CODECS.get(codec)
    if inflate is None:
        raise DecompressionFailed(f"codec {codec} does not exist")
    try:
        return inflate(bytes(data), limit_bytes)
    except cramjam.DecompressionError as error:
        raise DecompressionFailed(str(error)) from error


_Inflate = Callable[[bytes, int], bytes | memoryview]


def _buffer(size_bytes: int) -> bytearray | mmap.mmap:
    return bytearray(size_bytes) if size_bytes <= heap_buffer_bytes_max else mmap.mmap(-1, size_bytes)


def _bounded(decompress_into: Callable[[bytes, bytearray | mmap.mmap], int]) -> _Inflate:
    """Inflate into a buffer of fixed size, so that the codec itself stops at the limit."""

    def inflate(data: bytes, limit_bytes: int) -> memoryview:
        capacity = min(max(first_guess_bytes, 8 * len(data)), limit_bytes)
        while True:
            buffer = _buffer(capacity)
            try:
                size = decompress_into(data, buffer)
            except cramjam.DecompressionError as error:
                # Now, not when the last traceback that knows it is gone.
                buffer.clear() if isinstance(buffer, bytearray) else buffer.close()
                if str(error) != _BUFFER_IS_FULL:
                    raise
                if capacity >= limit_bytes:
                    raise InflatesPastLimit(f"inflates past {limit_bytes} bytes") from error
                capacity = limit_bytes
            else:
                return memoryview(buffer)[:size]

    return inflate


def _snappy(data: bytes, limit_bytes: int) -> memoryview:
    """Raw snappy, or the framing of Java's xerial library: a header, then length-prefixed blocks."""
    blocks = _xerial_blocks(data) if data.startswith(_XERIAL_MAGIC) else [data]
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    total = sum(sizes)
    if total > limit_bytes:
        raise InflatesPastLimit(f"inflates past {limit_bytes} bytes")
    inflated = memoryview(_buffer(total))
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, inflated[position : position + size])
        position += size
    return inflated


def _xerial_blocks(data: bytes) -> list[bytes]:
    blocks = []
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if position + 4 > len(data):
            raise DecompressionFailed("snappy block length is cut off")
        size = int.from_bytes(data[position : position + 4])
        position += 4
        if size > len(data) - position:
            raise DecompressionFailed("snappy block is cut off")
        blocks.append(data[position : position + size])
        position += size
    return blocks


_CODECS: dict[int, _Inflate] = {
    GZIP: _bounded(cramjam.gzip.decompress_into),
    SNAPPY: _snappy,
    LZ4: _bounded(cramjam.lz4.decompress_into),
    ZSTD: _bounded(cramjam.zstd.decompress_into),
}
