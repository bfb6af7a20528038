"""Variable-length integers: zigzag in records, unsigned in flexible messages (KIP-482).

The compiled kernel in `headgate.serdes.columnar` has its own readers, because Numba compiles them into their callers.
"""

from typing import Final

from headgate.wire.buffer import Buffer
from headgate.wire.errors import MalformedVarint

VARINT_BYTES_MAX: Final = 5
"""32 bits, seven per byte."""
VARLONG_BYTES_MAX: Final = 10
"""64 bits, seven per byte."""


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Zigzag integer of up to 64 bits, and the position after it. Raises MalformedVarint."""
    value, position = read_unsigned_varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def read_unsigned_varint(data: Buffer, position: int, bytes_max: int = VARLONG_BYTES_MAX) -> tuple[int, int]:
    """Unsigned integer and the position after it. Raises MalformedVarint."""
    value = shift = 0
    end = position + bytes_max
    try:
        while position < end:
            byte = data[position]
            position += 1
            if byte < 0x80:
                return value | byte << shift, position
            value |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise MalformedVarint("a varint is truncated") from None
    raise MalformedVarint(f"a varint is longer than {bytes_max} bytes")


def encode_varint(value: int) -> bytes:
    """Zigzag encoding of a signed 64-bit integer."""
    return encode_unsigned_varint((value << 1) ^ (value >> 63))


def encode_unsigned_varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
