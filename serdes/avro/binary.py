"""Avro's binary encoding of primitives. Functions take bytes and a position, and return the value and the next
position.

Follows the Avro 1.12 specification, "Binary encoding". Stricter than common decoders: a varint that is too long, a
boolean other than 0 or 1, a negative length and invalid UTF-8 are errors. Missing bytes are always `TRUNCATED`. The
third argument is unused; it gives all readers of the decoder the same signature.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from headgate.serdes.outcome import Reason

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


class Fault(Exception):
    """Why a body cannot be decoded. Each level appends its part to `path` while the exception propagates."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.path: list[str] = []

    def describe(self) -> str:
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self.detail}" if place else self.detail


def truncated(what: str, pos: int) -> Fault:
    return Fault(Reason.TRUNCATED, f"the bytes end inside {what} at {pos}")


def corrupt(detail: str, pos: int) -> Fault:
    return Fault(Reason.CORRUPT, f"{detail} at {pos}")


def read_long(data: bytes, pos: int, state: object = None) -> tuple[int, int]:
    try:
        byte = data[pos]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), pos + 1
        value = byte & 0x7F
        at = pos + 1
        for shift in (7, 14, 21, 28, 35, 42, 49, 56):
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), at
        byte = data[at]
    except IndexError:
        raise truncated("a number", pos) from None
    if byte > 1:
        raise corrupt("a number of more than 64 bits", pos)
    value |= byte << 63
    return (value >> 1) ^ -(value & 1), at + 1


def read_int(data: bytes, pos: int, state: object = None) -> tuple[int, int]:
    try:
        byte = data[pos]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), pos + 1
        value = byte & 0x7F
        at = pos + 1
        for shift in (7, 14, 21):
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), at
        byte = data[at]
    except IndexError:
        raise truncated("a number", pos) from None
    if byte > 0x0F:
        raise corrupt("an int of more than 32 bits", pos)
    value |= byte << 28
    return (value >> 1) ^ -(value & 1), at + 1


def read_length(data: bytes, pos: int) -> tuple[int, int]:
    """A length, and the position after it. The length never exceeds the remaining bytes."""
    length, at = read_long(data, pos)
    if length < 0:
        raise corrupt(f"a length of {length}", pos)
    if length > len(data) - at:
        raise truncated(f"{length} bytes", pos)
    return length, at


def read_boolean(data: bytes, pos: int, state: object = None) -> tuple[bool, int]:
    if pos >= len(data):
        raise truncated("a boolean", pos)
    byte = data[pos]
    if byte > 1:
        raise corrupt(f"a boolean of {byte}", pos)
    return byte == 1, pos + 1


def read_float(data: bytes, pos: int, state: object = None) -> tuple[float, int]:
    if len(data) - pos < 4:
        raise truncated("a float", pos)
    return _FLOAT.unpack_from(data, pos)[0], pos + 4


def read_double(data: bytes, pos: int, state: object = None) -> tuple[float, int]:
    if len(data) - pos < 8:
        raise truncated("a double", pos)
    return _DOUBLE.unpack_from(data, pos)[0], pos + 8


def read_bytes(data: bytes, pos: int, state: object = None) -> tuple[bytes, int]:
    length, at = read_length(data, pos)
    end = at + length
    return data[at:end], end


def read_string(data: bytes, pos: int, state: object = None) -> tuple[str, int]:
    length, at = read_length(data, pos)
    end = at + length
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        raise corrupt(f"invalid UTF-8 ({error.reason})", at + error.start) from None


def read_null(data: bytes, pos: int, state: object = None) -> tuple[None, int]:
    return None, pos


def skip_bytes(data: bytes, pos: int, state: object = None) -> tuple[None, int]:
    length, at = read_length(data, pos)
    return None, at + length


READERS: dict[str, Callable[[bytes, int, object], tuple[Any, int]]] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_int,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}


def long_to_float(value: int) -> float:
    """The nearest 32-bit float with a single rounding: first round to odd with 53 bits, then to 24 bits."""
    size = abs(value)
    extra = size.bit_length() - 53
    if extra > 0:
        low = size & ((1 << extra) - 1)
        size = ((size >> extra) | (low != 0)) << extra
    exact = float(-size if value < 0 else size)
    rounded: float = _FLOAT.unpack(_FLOAT.pack(exact))[0]
    return rounded


def write_long(out: bytearray, value: int) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)
