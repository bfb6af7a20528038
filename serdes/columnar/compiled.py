"""The interpreter as machine code: compiled by Numba once, then read from its cache on disk.

Numba keeps the code beside the source, or in the user's cache directory where that cannot be written
(`NUMBA_CACHE_DIR` names another); where neither can be, it is compiled anew in each process. Only copying and one
conversion differ from the plain form: eight bytes at a time, and the machine's own rounding.
"""

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import extending, njit, types
from numba.core import cgutils

from serdes.avro import decoder, defaults
from serdes.columnar import encode_opcodes, frames, interpreter, opcodes, primitives, records
from serdes.columnar import encode_rows as encoding
from serdes.columnar.primitives import is_utf8

SOURCES: tuple[ModuleType, ...] = (
    decoder, defaults, encode_opcodes, encoding, frames, interpreter, opcodes, primitives, records,
    sys.modules[__name__],
)  # fmt: skip
"""Everything that the compiled code is made of."""

BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
LONGS_IN = types.Array(types.int64, 1, "C", readonly=True)
U8 = types.uint8[::1]
I32 = types.int32[::1]
I64 = types.int64[::1]
F32 = types.float32[::1]
F64 = types.float64[::1]

BLOCK_BYTES = 32
"""From here on the machine's own copying beats eight bytes at a time."""

DECODE_ROWS = types.int64(
    BYTES_IN, LONGS_IN, LONGS_IN, types.int64, LONGS_IN, LONGS_IN,  # data, starts, ends, skip, slots, entries
    LONGS_IN, BYTES_IN, LONGS_IN, LONGS_IN, LONGS_IN,  # program, constants, base, room of scopes, room of bytes
    U8, I32, I64, F32, F64,  # the arena
    U8, I64, I64,  # reasons, stack, progress
)  # fmt: skip
DECODE_RECORDS = types.int64(
    BYTES_IN, LONGS_IN, types.int64, I64, I64, U8,  # data, sections, first offset, offsets, timestamps, their types
    I32, U8, U8, I32, U8, U8,  # keys, values
    I32, I32, U8, I32, U8, U8,  # headers: lists, keys, values
    U8, I64,  # corrupt, totals
)  # fmt: skip
ENCODE_ROWS = types.int64(
    BYTES_IN, LONGS_IN, BYTES_IN, LONGS_IN,  # frame, program, constants, base
    U8, I32, I64,  # the columns
    U8, I32, U8, I64, I64,  # out, its offsets, reasons, stack, progress
)  # fmt: skip
SCAN_FRAMES = types.int64(BYTES_IN, LONGS_IN, LONGS_IN, BYTES_IN, I64, I64, I64, I64)


def _register_marked() -> None:
    for module in SOURCES:
        for function in vars(module).values():
            if getattr(function, primitives.JITABLE_MARK, False) and function.__module__ == module.__name__:
                extending.register_jitable(function)


_register_marked()


def intrinsic(function: Callable[..., Any]) -> Any:
    """Numba's decorator, with the truth about its type: what comes out has another signature."""
    return extending.intrinsic(function)


def compiled_form_of(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """What compiled code calls in place of `plain`."""
    register: Callable[[Callable[..., Any]], Any] = extending.overload(plain, strict=False)
    return register


def compile_function(function: Callable[..., int], signature: Any) -> Callable[..., int]:
    try:
        return _compiled(function, signature, is_cached=True)
    except Exception:
        # No directory to keep the code in, or what lies there is broken in any way; a fault of the code shows again.
        return _compiled(function, signature, is_cached=False)


def _compiled(function: Callable[..., int], signature: Any, *, is_cached: bool) -> Callable[..., int]:
    dispatcher: Any = njit(nogil=True)(function)
    if is_cached:
        dispatcher.enable_caching()
        # Numba looks at the function's own file alone. Code kept from before another opcode or helper changed would run
        # wild, so the stamp covers every file that goes into it.
        dispatcher._cache._cache_file._source_stamp = _fingerprint()
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return cast(Callable[..., int], dispatcher)


@cache
def _fingerprint() -> str:
    digest = sha256()
    for module in SOURCES:
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()


@cache
def decode_rows() -> Callable[..., int]:
    return compile_function(interpreter.decode_rows, DECODE_ROWS)


@cache
def scan_frames() -> Callable[..., int]:
    return compile_function(frames.scan_frames, SCAN_FRAMES)


@cache
def decode_records() -> Callable[..., int]:
    return compile_function(records.decode_records, DECODE_RECORDS)


@cache
def encode_rows() -> Callable[..., int]:
    return compile_function(encoding.encode_rows, ENCODE_ROWS)


def _pointer_type() -> Any:
    llvm: Any = ir
    return llvm.IntType(64).as_pointer()


def _element(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """A pointer to eight bytes of an array of bytes, at any address."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _pointer_type())


@intrinsic
def load_eight(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_element(context, builder, signature.args[0], *arguments))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generate


@intrinsic
def store_eight(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store = builder.store(arguments[2], _element(context, builder, signature.args[0], *arguments[:2]))
        store.align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


@intrinsic
def copy_block(typing_context: Any, target: Any, at: Any, source: Any, pos: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        out_of = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        raw_memcpy: Any = cgutils.raw_memcpy
        raw_memcpy(builder, builder.gep(into, [arguments[1]]), builder.gep(out_of, [arguments[3]]), arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@compiled_form_of(primitives.to_float)
def _to_float(value: Any) -> Any:
    def convert(value: Any) -> Any:
        return np.float32(value)

    return convert


@compiled_form_of(primitives.copy_bytes)
def _copy_bytes(target: Any, at: Any, data: Any, pos: Any, size: Any) -> Any:
    def copy(target: Any, at: Any, data: Any, pos: Any, size: Any) -> None:
        if size == 8:
            store_eight(target, at, load_eight(data, pos))
        elif size > BLOCK_BYTES:
            copy_block(target, at, data, pos, size)
        elif size > 8:
            k = 0
            while k < size - 8:
                store_eight(target, at + k, load_eight(data, pos + k))
                k += 8
            # The last eight overlap those before them, so that nothing past the end is touched on either side.
            store_eight(target, at + size - 8, load_eight(data, pos + size - 8))
        else:
            for k in range(size):
                target[at + k] = data[pos + k]

    return copy


@compiled_form_of(primitives.copy_text)
def _copy_text(target: Any, at: Any, data: Any, pos: Any, size: Any) -> Any:
    def copy(target: Any, at: Any, data: Any, pos: Any, size: Any) -> bool:
        if size >= 8:
            k = 0
            high = np.uint64(0)
            while k < size - 8:
                word = load_eight(data, pos + k)
                store_eight(target, at + k, word)
                high |= word
                k += 8
            word = load_eight(data, pos + size - 8)
            store_eight(target, at + size - 8, word)
            high |= word
            if high & np.uint64(0x8080808080808080) == np.uint64(0):
                return True
        else:
            low = 0
            for k in range(size):
                byte = data[pos + k]
                target[at + k] = byte
                low |= byte
            if low < 0x80:
                return True
        return is_utf8(data, pos, pos + size)

    return copy
