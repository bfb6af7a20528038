"""The instruction set of encoding programs, in the format of `decode_opcodes`.

`idx` is the current row or item.
"""

from typing import Final

END: Final = 0
FAIL: Final = 1
"""reason"""
JUMP: Final = 2
"""target"""
CHECK: Final = 3
"""validity buffer: a null here is an error"""
PUT: Final = 4
"""position in the constants, length: bytes that are equal in all rows"""
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
"""offsets buffer, data buffer, what to check (ANY_BYTES…), position of the bounds in the constants, size of each"""
WHOLE: Final = 11
"""the same, without a length before the bytes"""
FIXED: Final = 12
"""buffer, size, what to check, position of the bounds in the constants, size of each"""
ENUM: Final = 13
"""buffer of symbol indexes, -1 for an unknown symbol"""
DECIMAL: Final = 14
"""buffer, width (16 or 32), size of the fixed or SIZED or UNSIZED, position of the bounds in the constants"""
UUID_FIXED: Final = 15
"""offsets buffer, data buffer"""
DURATION: Final = 16
"""buffers of months, days and milliseconds"""
NULLABLE: Final = 17
"""validity buffer, branch of null, branch of the value, target after a null"""
MEMBERS: Final = 18
"""number of members, branch of null or -1, target after a null, then for each its validity buffer, branch and target"""
LIST: Final = 19
"""offsets buffer, 1 if items take zero bytes, target after the list; the body ends with NEXT"""
NEXT: Final = 20

SIZED: Final = -1
"""A length precedes the bytes."""
UNSIZED: Final = -2

ANY_BYTES: Final = 0
IS_UTF8: Final = 1
IS_UUID: Final = 2
IS_DECIMAL: Final = 3
