"""Compiles the kernels to machine code with Numba, and caches the code on disk.

Numba caches next to the source file. If that folder is read-only, it uses the user's cache directory, or the directory
in `NUMBA_CACHE_DIR`. Without any writable directory, each process compiles again. Only the functions of
`word_overloads` differ from the plain kernels.
"""

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from numba import extending, njit, types

from headgate.serdes.avro import column_size, decoder, defaults
from headgate.serdes.columnar.kernels import (
    decode_opcodes,
    decode_rows,
    encode_opcodes,
    encode_rows,
    frames,
    primitives,
    records,
)
from headgate.serdes.columnar.native import intrinsics, word_overloads
from headgate.serdes.columnar.native.intrinsics import CellsType

SOURCES: Final[tuple[ModuleType, ...]] = (
    column_size, decoder, defaults, decode_opcodes, decode_rows, encode_opcodes, encode_rows, frames, intrinsics,
    primitives, records, word_overloads, sys.modules[__name__],
)  # fmt: skip
"""All modules that contribute to the compiled code."""

BYTES_IN: Final = CellsType(types.uint8, readonly=True)
LONGS_IN: Final = CellsType(types.int64, readonly=True)
U8: Final = CellsType(types.uint8)
I32: Final = CellsType(types.int32)
I64: Final = CellsType(types.int64)
F32: Final = CellsType(types.float32)
F64: Final = CellsType(types.float64)

DECODE_ROWS: Final = types.int64(
    BYTES_IN, LONGS_IN, LONGS_IN, types.int64, LONGS_IN, LONGS_IN,  # data, starts, ends, skip, slots, entries
    LONGS_IN, BYTES_IN, LONGS_IN, LONGS_IN, LONGS_IN,  # program, constants, base, room of scopes, room of bytes
    U8, I32, I64, F32, F64,  # the arena
    LONGS_IN, U8, I64, I64,  # limits, reasons, stack, progress
)  # fmt: skip
SCAN_RECORDS: Final = types.int64(
    BYTES_IN, LONGS_IN, types.int64, I64, I64, U8,  # data, sections, first offset, offsets, timestamps, their types
    I64, I64, I64, I64,  # keys, values
    I64, I32, U8,  # headers, their lists, corrupt
)  # fmt: skip
COPY_SPANS: Final = types.int64(BYTES_IN, LONGS_IN, LONGS_IN, I32, U8, U8)
FIND_HEADERS: Final = types.int64(BYTES_IN, LONGS_IN, CellsType(types.int32, readonly=True), I64, I64, I64, I64)
MAKE_TEXT: Final = types.int64(CellsType(types.int32, readonly=True), U8)
ENCODE_ROWS: Final = types.int64(
    BYTES_IN, LONGS_IN, BYTES_IN, LONGS_IN,  # frame, program, constants, base
    U8, I32, I64,  # the columns
    U8, I32, U8, I64, I64,  # out, its offsets, reasons, stack, progress
)  # fmt: skip
SCAN_FRAMES: Final = types.int64(BYTES_IN, LONGS_IN, LONGS_IN, BYTES_IN, I64, I64, I64, I64)

KERNELS: Final[dict[str, tuple[Callable[..., int], Any]]] = {
    "decode_rows": (decode_rows.decode_rows, DECODE_ROWS),
    "encode_rows": (encode_rows.encode_rows, ENCODE_ROWS),
    "scan_frames": (frames.scan_frames, SCAN_FRAMES),
    "scan_records": (records.scan_records, SCAN_RECORDS),
    "copy_spans": (records.copy_spans, COPY_SPANS),
    "find_headers": (records.find_headers, FIND_HEADERS),
    "make_text": (records.make_text, MAKE_TEXT),
}


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
        # No writable cache directory, or a damaged cache. An error in the kernel itself is raised again below.
        return _compiled(function, signature, is_cached=False)


def _compiled(function: Callable[..., int], signature: Any, *, is_cached: bool) -> Callable[..., int]:
    dispatcher: Any = njit(nogil=True)(function)
    if is_cached:
        dispatcher.enable_caching()
        # Numba's stamp covers only the file of the function. Stale code with other opcodes would corrupt memory, so
        # this stamp covers all sources.
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
def kernel(name: str) -> Callable[..., int]:
    return compile_function(*KERNELS[name])
