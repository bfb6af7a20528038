"""Avro's primitive encodings, with checks of all lengths and encodings.

A reader returns the value and the position after it. A negative position is minus the reason. `native.word_overloads`
replaces some functions with faster ones in machine code.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar, overload

from headgate.serdes.avro.binary import long_to_float
from headgate.serdes.outcome import Reason

Function = TypeVar("Function", bound=Callable[..., object])

TRUNCATED: Final = int(Reason.TRUNCATED)
CORRUPT: Final = int(Reason.CORRUPT)
TRAILING_BYTES: Final = int(Reason.TRAILING_BYTES)
INVALID_VALUE: Final = int(Reason.INVALID_VALUE)
TOO_DEEP: Final = int(Reason.TOO_DEEP)
TOO_LARGE: Final = int(Reason.TOO_LARGE)

INT_MAX: Final = 2**31 - 1
LOW_63: Final = 2**63 - 1
INLINE_MARK: Final = "is_compiled_inline"
DECIMAL_BOUND_BYTES: Final = 32
"""Bytes of each bound of a decimal that fits Arrow: enough for decimal256."""


class Cells(Protocol):
    """A flat array of integers: a NumPy array in compiled code, a list or memoryview in plain Python."""

    @overload
    def __getitem__(self, index: int, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> "Cells": ...
    @overload
    def __setitem__(self, index: int, value: int, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: "Cells", /) -> None: ...
    def __len__(self) -> int: ...


class Floats(Protocol):
    def __getitem__(self, index: int, /) -> float: ...
    def __setitem__(self, index: int, value: float, /) -> None: ...


def to_float(value: int) -> float:
    return long_to_float(value)


def jitable(function: Function) -> Function:
    """Mark a function for inlining into compiled code. It stays an ordinary function.

    An array is passed as seven arguments, so a call costs more than most of these functions. `native.compiled` passes
    the mark to Numba later, because the import of Numba takes a second.
    """
    setattr(function, INLINE_MARK, True)
    return function


def jitable_apart(function: Function) -> Function:
    """Mark a long or rarely used function for compiled code. It is called, not inlined."""
    setattr(function, INLINE_MARK, False)
    return function


@jitable
def read_long(data: Cells, pos: int, end: int) -> tuple[int, int]:
    if pos >= end:
        return 0, -TRUNCATED
    byte = data[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return longer_long(data, pos, end)


@jitable_apart
def slow_long(data: Cells, pos: int, end: int) -> tuple[int, int]:
    value = 0
    shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        # The tenth byte contains one bit of the 64.
        if shift == 63 and byte > 1:
            return 0, -CORRUPT
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & LOW_63) ^ -(value & 1), pos
        shift += 7
    return 0, -TRUNCATED


def longer_long(data: Cells, pos: int, end: int) -> tuple[int, int]:
    """A number of several bytes."""
    return slow_long(data, pos, end)


@jitable
def read_int(data: Cells, pos: int, end: int) -> tuple[int, int]:
    if pos >= end:
        return 0, -TRUNCATED
    byte = data[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return longer_int(data, pos, end)


@jitable_apart
def slow_int(data: Cells, pos: int, end: int) -> tuple[int, int]:
    value = 0
    shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        # The fifth byte contains four bits of the 32.
        if shift == 28 and byte > 0x0F:
            return 0, -CORRUPT
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
    return 0, -TRUNCATED


def longer_int(data: Cells, pos: int, end: int) -> tuple[int, int]:
    """A number of several bytes."""
    return slow_int(data, pos, end)


@jitable
def read_length(data: Cells, pos: int, end: int, whole: bool) -> tuple[int, int]:
    """The length of bytes or text, at most the remaining bytes. If `whole`, all remaining bytes."""
    if whole:
        return end - pos, pos
    value, pos = read_long(data, pos, end)
    if pos < 0:
        return 0, pos
    if value < 0:
        return 0, -CORRUPT
    if value > end - pos:
        return 0, -TRUNCATED
    return value, pos


@jitable_apart
def is_utf8(data: Cells, pos: int, end: int) -> bool:
    while pos < end:
        lead = data[pos]
        pos += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        follow = 1 + (lead >= 0xE0) + (lead >= 0xF0)
        if end - pos < follow:
            return False
        second = data[pos]
        low = 0x80
        high = 0xBF
        # The second byte reveals overlong forms, surrogates and code points above U+10FFFF.
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
        elif lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
        if second < low or second > high:
            return False
        for k in range(1, follow):
            if data[pos + k] & 0xC0 != 0x80:
                return False
        pos += follow
    return True


def copy_bytes(target: Cells, at: int, data: Cells, pos: int, size: int) -> None:
    target[at : at + size] = data[pos : pos + size]


def append_bytes(target: Cells, at: int, limit: int, data: Cells, pos: int, size: int) -> None:
    """Copy to the end of a buffer. May overwrite bytes after the copy, up to the limit."""
    target[at : at + size] = data[pos : pos + size]


def append_text(target: Cells, at: int, limit: int, data: Cells, pos: int, size: int) -> bool:
    """Copy and return whether it is UTF-8."""
    target[at : at + size] = data[pos : pos + size]
    return is_utf8(data, pos, pos + size)


@jitable
def is_hex(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= byte <= 102 or 65 <= byte <= 70


@jitable_apart
def is_uuid(data: Cells, pos: int, size: int) -> bool:
    """Whether it is thirty-two hexadecimal digits in groups of 8-4-4-4-12."""
    if size != 36:
        return False
    for k in range(36):
        byte = data[pos + k]
        if k in (8, 13, 18, 23):
            if byte != 45:
                return False
        elif not is_hex(byte):
            return False
    return True


@jitable
def hex_digit(value: int) -> int:
    return value + 48 if value < 10 else value + 87


@jitable_apart
def put_uuid(target: Cells, at: int, data: Cells, pos: int) -> None:
    """Write sixteen bytes as thirty-six characters."""
    for k in range(16):
        if k in (4, 6, 8, 10):
            target[at] = 45
            at += 1
        byte = data[pos + k]
        target[at] = hex_digit(byte >> 4)
        target[at + 1] = hex_digit(byte & 15)
        at += 2


def small_signed(data: Cells, pos: int, size: int) -> int:
    """A big-endian two's complement number of one to eight bytes."""
    value = data[pos] & 0xFF
    if value >= 0x80:
        value -= 0x100
    for k in range(1, size):
        value = (value << 8) | data[pos + k]
    return value


@jitable_apart
def decimal_fits(data: Cells, pos: int, size: int, constants: Cells, bounds: int, bound_size: int) -> bool:
    """Whether a big-endian two's complement number is within two adjacent bounds: lowest, highest."""
    if size == 0:
        return False
    negative = data[pos] >= 0x80
    fill = 0xFF if negative else 0
    for k in range(size - bound_size):
        if data[pos + k] != fill:
            return False
    bound = bounds if negative else bounds + bound_size
    for k in range(bound_size):
        j = size - bound_size + k
        byte = data[pos + j] if j >= 0 else fill
        limit = constants[bound + k]
        if byte != limit:
            # Numbers with the same sign have the same order as their bytes.
            return (byte > limit) == negative
    return True


@jitable_apart
def put_decimal(target: Cells, at: int, width: int, data: Cells, pos: int, size: int) -> None:
    """Write little-endian with `width` bytes from a big-endian number that fits."""
    fill = 0xFF if size > 0 and data[pos] >= 0x80 else 0
    for k in range(width):
        target[at + k] = data[pos + size - 1 - k] if k < size else fill
