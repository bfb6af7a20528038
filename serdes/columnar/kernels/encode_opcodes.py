"""The instruction set for writing: as `serdes.columnar.kernels.decode_opcodes`, from columns to bytes.

`idx` is the row, or the item, whose value is written.
"""

from typing import Final

END: Final = 0
FAIL: Final = 1
"""reason"""
JUMP: Final = 2
"""target"""
CHECK: Final = 3
"""validity buffer: a null here cannot be written"""
PUT: Final = 4
"""place in the constants, length: bytes that are the same for every row"""
BOOLEAN: Final = 5
"""buffer"""
INT: Final = 6
"""buffer, lowest, highest"""
LONG: Final = 7
"""buffer, lowest, highest"""
FLOAT: Final = 8
"""buffer"""
DOUBLE: Final = 9
"""buffer"""
TEXT: Final = 10
"""offsets buffer, data buffer, what to check (ANY_BYTES…), place of the bounds in the constants, size of each"""
WHOLE: Final = 11
"""the same; without the length before it"""
FIXED: Final = 12
"""buffer, size, what to check, place of the bounds in the constants, size of each"""
ENUM: Final = 13
"""buffer of symbol numbers, -1 for one that the schema has not"""
DECIMAL: Final = 14
"""buffer, width (16 or 32), size of the fixed or SIZED or UNSIZED, place of the bounds in the constants"""
UUID_FIXED: Final = 15
"""offsets buffer, data buffer"""
DURATION: Final = 16
"""buffers of months, of days, of milliseconds"""
NULLABLE: Final = 17
"""validity buffer, branch of null, branch of the value, target after a null"""
MEMBERS: Final = 18
"""number of members, branch of null or -1, target after a null, then for each its validity buffer, branch and target"""
LIST: Final = 19
"""offsets buffer, 1 where items take no bytes, target after the list; the body ends with NEXT"""
NEXT: Final = 20

SIZED: Final = -1
"""The length is written before the bytes."""
UNSIZED: Final = -2

ANY_BYTES: Final = 0
IS_UTF8: Final = 1
IS_UUID: Final = 2
IS_DECIMAL: Final = 3
