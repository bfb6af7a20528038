"""Decompression of record batches, bounded: a small batch must not become a large allocation.

Only cold paths come here (lookups by time, topics whose settings ask for a look at the records); on the hot path a
compressed batch passes through as it is.
"""

from collections.abc import Callable

import cramjam

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

# A batch is at most `max.message.bytes` (1 MiB by default) on the wire. Text compresses some 10-20 times; what
# inflates past this is a bomb, not a batch.
decompressed_bytes_max = 128 * 1024 * 1024

# The first guess at the inflated size; each further guess is eight times larger, up to the limit.
first_guess_bytes = 64 * 1024

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


def _bounded(decompress_into: Callable[[bytes, bytearray], int]) -> _Inflate:
    """Inflate into a buffer of fixed size, so that the codec itself stops at the limit."""

    def inflate(data: bytes, limit_bytes: int) -> memoryview:
        capacity = max(first_guess_bytes, 8 * len(data))
        while True:
            buffer = bytearray(min(capacity, limit_bytes))
            try:
                size = decompress_into(data, buffer)
            except cramjam.DecompressionError as error:
                # Now, not when the last traceback that knows it is gone.
                buffer.clear()
                if str(error) != _BUFFER_IS_FULL:
                    raise
                if capacity >= limit_bytes:
                    raise InflatesPastLimit(f"inflates past {limit_bytes} bytes") from error
                capacity *= 8
            else:
                return memoryview(buffer)[:size]

    return inflate


def _snappy(data: bytes, limit_bytes: int) -> bytes:
    """Raw snappy, or the framing of Java's xerial library: a header, then length-prefixed blocks."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit_bytes)
    out = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if position + 4 > len(data):
            raise DecompressionFailed("snappy block length is cut off")
        size = int.from_bytes(data[position : position + 4])
        position += 4
        if size > len(data) - position:
            raise DecompressionFailed("snappy block is cut off")
        out += _snappy_block(data[position : position + size], limit_bytes - len(out))
        position += size
    return bytes(out)


def _snappy_block(block: bytes, allowed_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > allowed_bytes:
        raise InflatesPastLimit(f"a block inflates past {allowed_bytes} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


_CODECS: dict[int, _Inflate] = {
    GZIP: _bounded(cramjam.gzip.decompress_into),
    SNAPPY: _snappy,
    LZ4: _bounded(cramjam.lz4.decompress_into),
    ZSTD: _bounded(cramjam.zstd.decompress_into),
}
