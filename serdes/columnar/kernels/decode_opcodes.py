"""The instruction set that the planner writes and the interpreter runs.

A program is a flat list of 64-bit integers: an opcode, then its operands, then the next opcode. `buffer` operands
number the buffers of the layout; targets and places are absolute positions in the program, or in the pool of constants
where it says so. `idx` is the row, or the item, that the current scope is at.
"""

from typing import Final

END: Final = 0
"""The schema is satisfied: bytes left over are an error."""
FAIL: Final = 1
"""reason: the reader cannot take what the writer wrote here."""
JUMP: Final = 2
"""target"""
CALL: Final = 3
"""target, levels open at this place: step over a record by its own routine"""
RETURN: Final = 4
ENTER: Final = 5
"""levels open in this routine once inside: TOO_DEEP past the limit"""

BOOLEAN: Final = 6
"""buffer"""
INT: Final = 7
"""buffer"""
LONG: Final = 8
"""buffer"""
INT_IN: Final = 9
"""buffer, lowest, end: a date or time of day, INVALID_VALUE outside"""
LONG_IN: Final = 10
"""buffer, lowest, end, 1 where the writer's is an int"""
PROMOTE: Final = 11
"""buffer, what the writer has (FROM_…), what the column holds (TO_…)"""
FLOAT: Final = 12
"""buffer"""
DOUBLE: Final = 13
"""buffer"""
STRING: Final = 14
"""offsets buffer, data buffer: checked to be UTF-8"""
BYTES: Final = 15
"""offsets buffer, data buffer"""
UUID_STRING: Final = 16
"""offsets buffer, data buffer: checked to be a UUID"""
UUID_FIXED: Final = 17
"""offsets buffer, data buffer: sixteen bytes, written out"""
FIXED: Final = 18
"""buffer, size"""
ENUM: Final = 19
"""offsets buffer, data buffer, number of symbols, then for each its place in the constants and its length, or minus the
reason and 0"""
DECIMAL: Final = 20
"""buffer, width (16 or 32), size of the fixed or -1 for bytes, place of the two bounds in the constants, 10^precision
or 0 where that needs more than 63 bits"""
DECIMAL_BYTES: Final = 21
"""offsets buffer, data buffer, place of the two bounds in the constants, size of each: too long for Arrow, so bytes"""
DECIMAL_FIXED: Final = 22
"""buffer, size, place of the two bounds in the constants, size of each"""
DURATION: Final = 23
"""buffers of months, of days, of milliseconds"""

WHOLE: Final = 24
"""The next length is not in the bytes: it is what is left of them."""

NULLABLE: Final = 25
"""index of the null branch of two, validity buffer, place of the null table, target after a null"""
UNION: Final = 26
"""number of branches, then a target for each"""
VALID: Final = 27
"""validity buffer: the value at idx is there"""
NULLS: Final = 28
"""place of a null table: the value at idx is not there"""
LIST: Final = 29
"""offsets buffer, scope of the items, 1 where items take no bytes, target after the list; the body ends with NEXT"""
NEXT: Final = 30

SKIP_INT: Final = 31
"""how many in a row"""
SKIP_LONG: Final = 32
"""how many in a row"""
SKIP_BYTES: Final = 33
"""how many in a row"""
SKIP_FIXED: Final = 34
"""size"""
SKIP_BOOLEAN: Final = 35
SKIP_ENUM: Final = 36
"""number of symbols"""
SKIP_LIST: Final = 37
"""1 where the items take no bytes, target after the list; the body ends with NEXT"""

SET_1: Final = 38
"""buffer, value: these write a reader's default"""
SET_4: Final = 39
"""buffer, value"""
SET_8: Final = 40
"""buffer, value"""
SET_FIXED: Final = 41
"""buffer, size, place in the constants"""
SET_BYTES: Final = 42
"""offsets buffer, data buffer, place in the constants, length"""
OPEN_LIST: Final = 43
"""offsets buffer, scope of the items, number of items, which follow one after another"""
NEXT_ITEM: Final = 44
CLOSE_LIST: Final = 45

NULL_1: Final = 0
"""A null table holds a count, then triples of kind, buffer, width. (NULL_1, validity buffer, 1) says "not there"."""
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
"""Rounded to a float, then held as a double: a reader's union of float and double is one column."""
