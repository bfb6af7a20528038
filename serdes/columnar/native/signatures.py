"""The arguments of the kernels, for the compiler and for the code that calls them."""

from typing import Final

INT: Final = "int"
"""An integer of 64 bits. All other kinds are arrays: a NumPy type, and `in` for arrays that the kernel only reads."""
BYTES_IN: Final = "uint8 in"
INTS_IN: Final = "int32 in"
LONGS_IN: Final = "int64 in"
U8: Final = "uint8"
I32: Final = "int32"
I64: Final = "int64"
F32: Final = "float32"
F64: Final = "float64"

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    "scan_frames": (BYTES_IN, LONGS_IN, LONGS_IN, BYTES_IN, I64, I64, I64, I64),
    "copy_spans": (BYTES_IN, LONGS_IN, LONGS_IN, I32, U8, U8),
    "find_headers": (BYTES_IN, LONGS_IN, INTS_IN, I64, I64, I64, I64),
    "make_text": (INTS_IN, U8),
    "scan_records": (
        BYTES_IN, LONGS_IN, INT, I64, I64, U8,  # data, sections, first offset, offsets, timestamps, their types
        I64, I64, I64, I64,  # keys, values
        I64, I32, U8,  # headers, their lists, corrupt
    ),
    "decode_rows": (
        BYTES_IN, LONGS_IN, LONGS_IN, INT, LONGS_IN, LONGS_IN,  # data, starts, ends, skip, slots, entries
        LONGS_IN, BYTES_IN, LONGS_IN, LONGS_IN, LONGS_IN,  # program, constants, base, room of scopes, room of bytes
        U8, I32, I64, F32, F64,  # the arena
        LONGS_IN, U8, I64, I64,  # limits, reasons, stack, progress
    ),
    "encode_rows": (
        BYTES_IN, LONGS_IN, BYTES_IN, LONGS_IN,  # frame, program, constants, base
        U8, I32, I64,  # the columns
        U8, I32, U8, I64, I64,  # out, its offsets, reasons, stack, progress
    ),
}  # fmt: skip
"""All kernels, in the order of compilation: a kernel that compiles fast is available early."""

ENCODING_KERNELS: Final = ("encode_rows",)
DECODING_KERNELS: Final = tuple(kernel for kernel in SIGNATURES if kernel not in ENCODING_KERNELS)


def is_read_only(kind: str) -> bool:
    return kind.endswith(" in")


def element_type(kind: str) -> str:
    """The name of the NumPy type of the elements."""
    return kind.removesuffix(" in")


def symbol(kernel: str) -> str:
    """The name of the function in the object code."""
    return f"headgate_{kernel}"
