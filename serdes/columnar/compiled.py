"""The interpreter as machine code: compiled by Numba once, then read from its cache on disk.

Numba keeps the code beside the source, or in the user's cache directory where that cannot be written
(`NUMBA_CACHE_DIR` names another); where neither can be, it is compiled anew in each process. Only what is done eight
bytes at a time differs from the plain form: `serdes.columnar.word_forms`.
"""

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from numba import extending, njit, types

from headgate.serdes.avro import decoder, defaults
from headgate.serdes.columnar import (
    encode_opcodes,
    frames,
    interpreter,
    machine,
    opcodes,
    primitives,
    records,
    word_forms,
)
from headgate.serdes.columnar import encode_rows as encoding
from headgate.serdes.columnar.machine import CellsType

SOURCES: tuple[ModuleType, ...] = (
    decoder, defaults, encode_opcodes, encoding, frames, interpreter, machine, opcodes, primitives, records, word_forms,
    sys.modules[__name__],
)  # fmt: skip
"""Everything that the compiled code is made of."""

BYTES_IN = CellsType(types.uint8, readonly=True)
LONGS_IN = CellsType(types.int64, readonly=True)
U8 = CellsType(types.uint8)
I32 = CellsType(types.int32)
I64 = CellsType(types.int64)
F32 = CellsType(types.float32)
F64 = CellsType(types.float64)

DECODE_ROWS = types.int64(
    BYTES_IN, LONGS_IN, LONGS_IN, types.int64, LONGS_IN, LONGS_IN,  # data, starts, ends, skip, slots, entries
    LONGS_IN, BYTES_IN, LONGS_IN, LONGS_IN, LONGS_IN,  # program, constants, base, room of scopes, room of bytes
    U8, I32, I64, F32, F64,  # the arena
    U8, I64, I64,  # reasons, stack, progress
)  # fmt: skip
SCAN_RECORDS = types.int64(
    BYTES_IN, LONGS_IN, types.int64, I64, I64, U8,  # data, sections, first offset, offsets, timestamps, their types
    I64, I64, I64, I64,  # keys, values
    I64, I32, U8,  # headers, their lists, corrupt
)  # fmt: skip
COPY_SPANS = types.int64(BYTES_IN, LONGS_IN, LONGS_IN, I32, U8, U8)
FIND_HEADERS = types.int64(BYTES_IN, LONGS_IN, CellsType(types.int32, readonly=True), I64, I64, I64, I64)
MAKE_TEXT = types.int64(CellsType(types.int32, readonly=True), U8)
ENCODE_ROWS = types.int64(
    BYTES_IN, LONGS_IN, BYTES_IN, LONGS_IN,  # frame, program, constants, base
    U8, I32, I64,  # the columns
    U8, I32, U8, I64, I64,  # out, its offsets, reasons, stack, progress
)  # fmt: skip
SCAN_FRAMES = types.int64(BYTES_IN, LONGS_IN, LONGS_IN, BYTES_IN, I64, I64, I64, I64)


def _register_marked() -> None:
    for module in SOURCES:
        for function in vars(module).values():
            is_inline = getattr(function, primitives.INLINE_MARK, None)
            if is_inline is not None and function.__module__ == module.__name__:
                extending.register_jitable(forceinline=is_inline)(function)


_register_marked()


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
def scan_records() -> Callable[..., int]:
    return compile_function(records.scan_records, SCAN_RECORDS)


@cache
def copy_spans() -> Callable[..., int]:
    return compile_function(records.copy_spans, COPY_SPANS)


@cache
def find_headers() -> Callable[..., int]:
    return compile_function(records.find_headers, FIND_HEADERS)


@cache
def make_text() -> Callable[..., int]:
    return compile_function(records.make_text, MAKE_TEXT)


@cache
def encode_rows() -> Callable[..., int]:
    return compile_function(encoding.encode_rows, ENCODE_ROWS)
