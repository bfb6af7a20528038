"""The instruction set of decoding programs.

A program is a flat list of 64-bit integers: an opcode, its operands, the next opcode. `buffer` operands are numbers of
buffers in the layout. Targets and positions are absolute, in the program or in the constant pool. `idx` is the current
row or item of the scope.
"""

from typing import Final

END: Final = 0
"""The value is complete. Remaining bytes are an error."""
FAIL: Final = 1
"""reason: the reader cannot read this writer value."""
JUMP: Final = 2
"""target"""
CALL: Final = 3
"""target, enclosing levels: skip a record with its subroutine"""
RETURN: Final = 4
ENTER: Final = 5
"""enclosing levels inside this subroutine: TOO_DEEP above the limit"""

BOOLEAN: Final = 6
"""buffer"""
INT: Final = 7
"""buffer"""
LONG: Final = 8
"""buffer"""
INT_IN: Final = 9
"""buffer, lowest, end: a date or time of day, INVALID_VALUE outside the range"""
LONG_IN: Final = 10
"""buffer, lowest, end, 1 if the writer type is an int"""
PROMOTE: Final = 11
"""buffer, writer type (FROM_…), column type (TO_…)"""
FLOAT: Final = 12
"""buffer"""
DOUBLE: Final = 13
"""buffer"""
STRING: Final = 14
"""offsets buffer, data buffer: checks UTF-8"""
BYTES: Final = 15
"""offsets buffer, data buffer"""
UUID_STRING: Final = 16
"""offsets buffer, data buffer: checks the UUID format"""
UUID_FIXED: Final = 17
"""offsets buffer, data buffer: sixteen bytes, written as text"""
FIXED: Final = 18
"""buffer, size"""
ENUM: Final = 19
"""offsets buffer, data buffer, number of symbols, then for each symbol its position in the constants and its length, or
minus the reason and 0"""
DECIMAL: Final = 20
"""buffer, width (16 or 32), size of the fixed or -1 for bytes, position of both bounds in the constants, 10^precision
or 0 if that needs more than 63 bits"""
DECIMAL_BYTES: Final = 21
"""offsets buffer, data buffer, position of both bounds in the constants, size of each: too long for Arrow, so binary"""
DECIMAL_FIXED: Final = 22
"""buffer, size, position of both bounds in the constants, size of each"""
DURATION: Final = 23
"""buffers of months, days and milliseconds"""

WHOLE: Final = 24
"""The next length is not encoded: it is the number of remaining bytes."""

NULLABLE: Final = 25
"""index of the null branch of two, validity buffer, position of the null table, target after a null"""
UNION: Final = 26
"""number of branches, then a target for each"""
VALID: Final = 27
"""validity buffer: the value at idx is present"""
NULLS: Final = 28
"""position of a null table: the value at idx is null"""
LIST: Final = 29
"""offsets buffer, scope of the items, size of an item as columns, 1 if items take zero bytes, target after the list;
the body ends with NEXT"""
NEXT: Final = 30

SKIP_INT: Final = 31
"""number of adjacent values"""
SKIP_LONG: Final = 32
"""number of adjacent values"""
SKIP_BYTES: Final = 33
"""number of adjacent values"""
SKIP_FIXED: Final = 34
"""size"""
SKIP_BOOLEAN: Final = 35
SKIP_ENUM: Final = 36
"""number of symbols"""
SKIP_LIST: Final = 37
"""1 if the items take zero bytes, target after the list; the body ends with NEXT"""

SET_1: Final = 38
"""buffer, value: these opcodes write a reader default"""
SET_4: Final = 39
"""buffer, value"""
SET_8: Final = 40
"""buffer, value"""
SET_FIXED: Final = 41
"""buffer, size, position in the constants"""
SET_BYTES: Final = 42
"""offsets buffer, data buffer, position in the constants, length"""
OPEN_LIST: Final = 43
"""offsets buffer, scope of the items, number of items, their size as columns; the items follow"""
NEXT_ITEM: Final = 44
CLOSE_LIST: Final = 45

NULL_1: Final = 0
"""A null table contains a count, then triples of kind, buffer, width. (NULL_1, validity buffer, 1) means null."""
NULL_4: Final = 1
NULL_8: Final = 2
NULL_FIXED: Final = 3
NULL_OFFSET: Final = 4
"""The list or text is empty."""

FROM_INT: Final = 0
FROM_LONG: Final = 1
FROM_FLOAT: Final = 2
TO_LONG: Final = 0
TO_FLOAT: Final = 1
TO_DOUBLE: Final = 2
TO_FLOAT_IN_DOUBLE: Final = 3
"""Rounded to a float, then stored as a double: a reader union of float and double is one column."""
