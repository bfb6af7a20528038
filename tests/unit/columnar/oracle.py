"""The results of the row-wise decoder for a batch, and their comparison with columns."""

import itertools
import math
import struct
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from pyarrow import lib as pa

from headgate.serdes.avro import Decoder, Duration, Schema
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Union
from headgate.serdes.columnar.arrow_types import ARROW_PRECISION_MAX
from headgate.serdes.columnar.layout import is_null, widened
from headgate.serdes.outcome import Poison, Reason

_EXACT = Context(prec=2000)


def verdict(payload: bytes | None, decoders: dict[int, Decoder]) -> tuple[int, Any]:
    if payload is None:
        return Reason.NULL, None
    if len(payload) < 5:
        return Reason.TOO_SHORT, None
    if payload[0] != 0:
        return Reason.BAD_MAGIC, None
    decoder = decoders.get(struct.unpack(">I", payload[1:5])[0])
    if decoder is None:
        return Reason.UNKNOWN_SCHEMA, None
    outcome = decoder.decode(payload[5:])
    return (outcome.reason, None) if isinstance(outcome, Poison) else (0, outcome)


def rows_of(array: pa.Array, schema: Schema) -> list[Any]:
    """The column as values of the row-wise decoder."""
    if isinstance(schema, Union):
        return union_rows(array, schema)
    plain: list[Any] = [None] * len(array)
    if isinstance(schema, Record):
        columns = {
            field.name: rows_of(array.field(field.name), field.schema)
            for field in schema.fields
            if array.type.get_field_index(field.name) >= 0
        }
        plain = [{name: column[row] for name, column in columns.items()} for row in range(len(array))]
    elif isinstance(schema, Array):
        items = rows_of(array.values, schema.items)
        plain = [items[start:end] for start, end in bounds(array)]
    elif isinstance(schema, Map):
        keys, items = array.keys.to_pylist(), rows_of(array.items, schema.values)
        plain = [dict(zip(keys[start:end], items[start:end], strict=True)) for start, end in bounds(array)]
    elif isinstance(schema, (Primitive, Fixed)):
        plain = scalar_rows(array, schema)
    elif isinstance(schema, Enum):
        plain = array.to_pylist()
    return [value if known else None for value, known in zip(plain, array.is_valid().to_pylist(), strict=True)]


def bounds(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(itertools.pairwise(offsets))


def union_rows(array: pa.Array, schema: Union) -> list[Any]:
    if all(is_null(branch) for branch in schema.branches):
        return [None] * len(array)
    single = widened(schema)
    if single is not None:
        return rows_of(array, single)
    members = [branch for branch in schema.branches if not is_null(branch)]
    columns = [
        (array.field(f"member{index}").is_valid().to_pylist(), rows_of(array.field(f"member{index}"), branch))
        for index, branch in enumerate(members)
        if array.type.get_field_index(f"member{index}") >= 0
    ]
    out = []
    for row, known in enumerate(array.is_valid().to_pylist()):
        there = [column[row] for valid, column in columns if valid[row]]
        assert len(there) <= 1, "a union has one member"
        # Below a null record, a union may have no member.
        out.append(there[0] if known and there else None)
    return out


def scalar_rows(array: pa.Array, schema: Primitive | Fixed) -> list[Any]:
    logical = schema.logical
    if logical is None:
        return list(array.to_pylist())
    if logical.name.endswith("nanos"):
        return list(array.cast(pa.int64()).to_pylist())
    values = array.to_pylist()
    if logical.name == "uuid":
        return [UUID(value) if value else None for value in values]
    if logical.name == "duration":
        return [None if value is None else Duration(**value) for value in values]
    if logical.name == "decimal" and logical.precision > ARROW_PRECISION_MAX:
        return [
            None if not value else _EXACT.scaleb(Decimal(int.from_bytes(value, signed=True)), -logical.scale)
            for value in values
        ]
    return list(values)


def same(ours: Any, expected: Any) -> bool:
    """Equality with NaN equal to NaN and 0.0 different from -0.0. An omitted column equals nothing."""
    if isinstance(expected, dict) and isinstance(ours, dict):
        return all(
            same(ours[key], value) if key in ours else value in (None, [], {}) for key, value in expected.items()
        ) and set(ours) <= set(expected)
    if isinstance(expected, list) and isinstance(ours, list):
        return len(ours) == len(expected) and all(map(same, ours, expected))
    if isinstance(expected, float) and isinstance(ours, float):
        return (math.isnan(ours) and math.isnan(expected)) or struct.pack("<d", ours) == struct.pack("<d", expected)
    return bool(ours == expected) and isinstance(ours, bool) == isinstance(expected, bool)


def too_deep(schema: Schema, value: Any, recursion_max: int, around: tuple[Record, ...] = ()) -> bool:
    """Whether a value contains data in an omitted column of a recursive record."""
    if left_out(schema, recursion_max, around):
        return value not in (None, [], {}) or (value == {} and fits_record(schema))
    if isinstance(schema, Union):
        return any(too_deep(branch, value, recursion_max, around) for branch in schema.branches if fits(branch, value))
    if not fits(schema, value):
        return False
    if isinstance(schema, Array):
        return any(too_deep(schema.items, item, recursion_max, around) for item in value)
    if isinstance(schema, Map):
        return any(too_deep(schema.values, item, recursion_max, around) for item in value.values())
    assert isinstance(schema, Record)
    inner = (*around, schema)
    return any(too_deep(field.schema, value[field.name], recursion_max, inner) for field in schema.fields)


def left_out(schema: Schema, recursion_max: int, around: tuple[Record, ...]) -> bool:
    if isinstance(schema, Record):
        return around.count(schema) > recursion_max
    if isinstance(schema, Array):
        return left_out(schema.items, recursion_max, around)
    if isinstance(schema, Map):
        return left_out(schema.values, recursion_max, around)
    if isinstance(schema, Union):
        members = [branch for branch in schema.branches if not is_null(branch)]
        return bool(members) and all(left_out(branch, recursion_max, around) for branch in members)
    return False


def fits_record(schema: Schema) -> bool:
    branches = schema.branches if isinstance(schema, Union) else (schema,)
    return any(isinstance(branch, Record) and not branch.fields for branch in branches)


def fits(schema: Schema, value: Any) -> bool:
    if isinstance(schema, Record):
        return isinstance(value, dict) and value.keys() == {field.name for field in schema.fields}
    if isinstance(schema, Map):
        return isinstance(value, dict)
    return isinstance(value, list) if isinstance(schema, Array) else False
