"""The size of a decoded value as columns, in bytes. All decoders count it alike, so that they reject the same values.

A null in an array takes one byte of the body, and one cell in each column below it: a body of 600 kB can need 240 MB.
The size of a row is the sum of:

- for the row and for each item of an array or map: 8 bytes per column, or the width of a wider fixed or decimal
- the bytes of strings, bytes, enum symbols and map keys

Arrow batches and Spark's rows both need about this much. A recursive record counts with the levels of its columns.
"""

from dataclasses import dataclass
from typing import Final

from headgate.serdes.avro.defaults import default_branch
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union

ROW_BYTES_MAX: Final = 256 * 1024 * 1024
"""Default limit of one row."""
CELL_BYTES: Final = 8
UUID_CHARS: Final = 36
RECURSION_MAX_DEFAULT: Final = 4
"""How often a record type may contain itself."""
COLUMNS_MAX: Final = 20_000
"""Columns of one reader schema. Records that refer to each other in pairs double with each level."""
LEVELS_MAX: Final = 100
"""Nested levels of columns, as many as a decoder accepts in a body."""
COLUMNS_MEASURED_MAX: Final = LEVELS_MAX * COLUMNS_MAX
"""Columns of all arrays and maps of a schema together, about a second of work. Readers of columns have fewer. Other
readers do not count the items of the arrays and maps beyond it."""
DECIMAL_COLUMN_PRECISION_MAX: Final = 76
"""Digits of Arrow's decimal256. A decimal with more digits stays binary."""
DECIMAL_128_PRECISION_MAX: Final = 38


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    row_bytes_max: int = ROW_BYTES_MAX
    recursion_max: int = RECURSION_MAX_DEFAULT


DEFAULT_LIMITS: Final = ColumnLimits()


def item_bytes(schema: Schema, recursion_max: int) -> int:
    """The size of one value without text and without the items of arrays and maps."""
    return _item_size(schema, recursion_max)[0]


def _item_size(schema: Schema, recursion_max: int) -> tuple[int, int]:
    """The size, and the number of columns."""
    total = columns = 0
    work: list[tuple[Schema, tuple[Schema, ...]]] = [(schema, ())]
    while work and columns < COLUMNS_MAX:
        schema, around = work.pop()
        columns += 1
        if isinstance(schema, Record):
            if around.count(schema) <= recursion_max and len(around) < LEVELS_MAX:
                total += CELL_BYTES
                inner = (*around, schema)
                work += [(field.schema, inner) for field in schema.fields]
        elif isinstance(schema, Union):
            members = [branch for branch in schema.branches if not _is_null(branch)]
            total += CELL_BYTES if len(members) > 1 else 0
            work += [(branch, around) for branch in members]
        else:
            total += _width(schema)
    return total, columns


def entry_bytes(schema: Array | Map, recursion_max: int) -> int:
    """The size of one item of an array, or of one entry of a map."""
    return entry_size(schema, recursion_max)[0]


def entry_size(schema: Array | Map, recursion_max: int) -> tuple[int, int]:
    """The size of one item or entry, and the number of its columns."""
    size, columns = _item_size(schema.items if isinstance(schema, Array) else schema.values, recursion_max)
    return size + (0 if isinstance(schema, Array) else CELL_BYTES), columns


def default_bytes(schema: Schema, default: object, recursion_max: int) -> int:
    """The text and the items of a default. Its cells are part of `item_bytes`."""
    if isinstance(schema, Union):
        return default_bytes(schema.branches[default_branch(schema, default)], default, recursion_max)
    if isinstance(schema, Record):
        assert isinstance(default, dict)
        return sum(
            default_bytes(field.schema, default.get(field.name, field.default), recursion_max)
            for field in schema.fields
        )
    if isinstance(schema, Array):
        assert isinstance(default, list)
        inside = sum(default_bytes(schema.items, item, recursion_max) for item in default)
        return inside + len(default) * entry_bytes(schema, recursion_max)
    if isinstance(schema, Map):
        assert isinstance(default, dict)
        inside = sum(len(key.encode()) for key in default)
        inside += sum(default_bytes(schema.values, value, recursion_max) for value in default.values())
        return inside + len(default) * entry_bytes(schema, recursion_max)
    if not is_text(schema):
        return 0
    if isinstance(schema, Fixed):
        return UUID_CHARS
    assert isinstance(default, str)
    is_bytes = isinstance(schema, Primitive) and schema.kind == "bytes"
    return len(default) if is_bytes else len(default.encode())


def is_text(schema: Primitive | Fixed | Enum) -> bool:
    """Whether values are stored as text or bytes of variable length."""
    if isinstance(schema, Enum):
        return True
    if isinstance(schema, Fixed):
        return schema.logical is not None and schema.logical.name == "uuid"
    return schema.kind == "string" or (schema.kind == "bytes" and not _is_decimal(schema))


def _width(schema: Primitive | Fixed | Enum | Array | Map) -> int:
    if isinstance(schema, (Primitive, Fixed)):
        if _is_decimal(schema):
            assert schema.logical is not None
            return 16 if schema.logical.precision <= DECIMAL_128_PRECISION_MAX else 32
        if isinstance(schema, Fixed) and schema.logical is not None and schema.logical.name == "duration":
            return 4 * CELL_BYTES
        if isinstance(schema, Fixed) and not is_text(schema):
            return max(CELL_BYTES, schema.size)
    return CELL_BYTES


def _is_decimal(schema: Primitive | Fixed) -> bool:
    logical = schema.logical
    return logical is not None and logical.name == "decimal" and logical.precision <= DECIMAL_COLUMN_PRECISION_MAX


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"
