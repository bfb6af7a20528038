"""Overloads of `kernels.primitives` for machine code that process eight bytes at a time.

The results are the same. Reads stay within the array for any payload: eight bytes are loaded only if the array has
them, and bytes after the end of the row are ignored.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import extending

from headgate.serdes.columnar.kernels import primitives
from headgate.serdes.columnar.kernels.primitives import CORRUPT, is_utf8, slow_int, slow_long
from headgate.serdes.columnar.native.intrinsics import as_big_endian, copy_block, load_eight, low_zeros, store_eight

BLOCK_BYTES: Final = 32
"""For longer copies, memcpy is faster than eight bytes at a time."""
WORD_BYTES: Final = 8
HIGH_BITS: Final = np.uint64(0x8080808080808080)


def compiled_form_of(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Register the function that compiled code calls instead of `plain`."""
    overload: Any = extending.overload
    register: Callable[[Callable[..., Any]], Any] = overload(plain, strict=False, jit_options={"forceinline": True})
    return register


@compiled_form_of(primitives.to_float)
def _to_float(value: Any) -> Any:
    def convert(value: Any) -> Any:
        return np.float32(value)

    return convert


@extending.register_jitable(forceinline=True)
def seven_bits(word: Any, stops: Any) -> Any:
    """Concatenates the low seven bits of each byte up to the first stop, at most 56 bits."""
    lowest = stops & (~stops + np.uint64(1))
    word &= (lowest - np.uint64(1)) & np.uint64(0x7F7F7F7F7F7F7F7F)
    word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    return (word & np.uint64(0x0FFFFFFF)) | ((word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))


@compiled_form_of(primitives.longer_long)
def _longer_long(data: Any, pos: Any, end: Any) -> Any:
    def read(data: Any, pos: Any, end: Any) -> Any:
        if end - pos < WORD_BYTES:
            return slow_long(data, pos, end)
        word = load_eight(data, pos)
        stops = ~word & HIGH_BITS
        if stops == np.uint64(0):
            return slow_long(data, pos, end)
        value = np.int64(seven_bits(word, stops))
        return (value >> 1) ^ -(value & 1), pos + (low_zeros(stops) >> 3) + 1

    return read


@compiled_form_of(primitives.longer_int)
def _longer_int(data: Any, pos: Any, end: Any) -> Any:
    def read(data: Any, pos: Any, end: Any) -> Any:
        if end - pos < WORD_BYTES:
            return slow_int(data, pos, end)
        word = load_eight(data, pos)
        # The fifth byte contains four bits and is the last.
        stops = ~word & np.uint64(0x8080808080)
        if stops == np.uint64(0):
            return 0, -CORRUPT
        value = np.int64(seven_bits(word, stops))
        if value >> 32 != 0:
            return 0, -CORRUPT
        return (value >> 1) ^ -(value & 1), pos + (low_zeros(stops) >> 3) + 1

    return read


@compiled_form_of(primitives.small_signed)
def _small_signed(data: Any, pos: Any, size: Any) -> Any:
    def read(data: Any, pos: Any, size: Any) -> Any:
        if pos + WORD_BYTES <= len(data):
            return as_big_endian(load_eight(data, pos)) >> (64 - 8 * size)
        value = np.int64(data[pos])
        if value >= 0x80:
            value -= 0x100
        for k in range(1, size):
            value = (value << 8) | data[pos + k]
        return value

    return read


@compiled_form_of(primitives.copy_bytes)
def _copy_bytes(target: Any, at: Any, data: Any, pos: Any, size: Any) -> Any:
    def copy(target: Any, at: Any, data: Any, pos: Any, size: Any) -> None:
        if size == WORD_BYTES:
            store_eight(target, at, load_eight(data, pos))
        elif size > BLOCK_BYTES:
            copy_block(target, at, data, pos, size)
        elif size > WORD_BYTES:
            copy_some(target, at, data, pos, size)
        else:
            for k in range(size):
                target[at + k] = data[pos + k]

    return copy


@compiled_form_of(primitives.append_bytes)
def _append_bytes(target: Any, at: Any, limit: Any, data: Any, pos: Any, size: Any) -> Any:
    def copy(target: Any, at: Any, limit: Any, data: Any, pos: Any, size: Any) -> None:
        if size > BLOCK_BYTES:
            copy_block(target, at, data, pos, size)
        elif size > WORD_BYTES:
            copy_some(target, at, data, pos, size)
        elif pos + WORD_BYTES <= len(data) and at + WORD_BYTES <= limit:
            store_eight(target, at, load_eight(data, pos))
        else:
            for k in range(size):
                target[at + k] = data[pos + k]

    return copy


@compiled_form_of(primitives.append_text)
def _append_text(target: Any, at: Any, limit: Any, data: Any, pos: Any, size: Any) -> Any:
    def copy(target: Any, at: Any, limit: Any, data: Any, pos: Any, size: Any) -> bool:
        if size == 0:
            return True
        if size > WORD_BYTES:
            high = copy_some(target, at, data, pos, size)
        elif pos + WORD_BYTES <= len(data) and at + WORD_BYTES <= limit:
            word = load_eight(data, pos)
            store_eight(target, at, word)
            high = word << np.uint64(64 - 8 * size)
        else:
            high = np.uint64(0)
            for k in range(size):
                target[at + k] = data[pos + k]
                high |= np.uint64(data[pos + k])
        return high & HIGH_BITS == np.uint64(0) or is_utf8(data, pos, pos + size)

    return copy


@extending.register_jitable(forceinline=True)
def copy_some(target: Any, at: Any, data: Any, pos: Any, size: Any) -> Any:
    """Copy more than eight bytes. Returns the OR of all bytes.

    The last words overlap the previous ones, so that nothing after the end is read or written.
    """
    last = load_eight(data, pos + size - WORD_BYTES)
    high = load_eight(data, pos)
    store_eight(target, at, high)
    store_eight(target, at + size - WORD_BYTES, last)
    high |= last
    for k in range(WORD_BYTES, size - WORD_BYTES, WORD_BYTES):
        word = load_eight(data, pos + k)
        store_eight(target, at + k, word)
        high |= word
    return high
