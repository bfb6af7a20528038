"""Compiles a schema and the columns of one batch into an encoding program, and packs the buffers of the columns.

Each batch has a new program, because it depends on which columns contain nulls. It takes a few microseconds per field.
"""

from typing import Final

from pyarrow import lib as pa

from headgate.serdes.avro import EncodeError, Encoder
from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.defaults import default_value
from headgate.serdes.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    is_zero_size,
)
from headgate.serdes.columnar.arrow_types import DURATION_PARTS, RANGES, is_arrow_decimal, scalar_type
from headgate.serdes.columnar.constant_pool import Constants
from headgate.serdes.columnar.encode.packing import Packing
from headgate.serdes.columnar.errors import NotEncodable
from headgate.serdes.columnar.kernels import encode_opcodes as op
from headgate.serdes.columnar.layout import is_null, widened
from headgate.serdes.outcome import Reason

_BITS: Final = {"int": 31, "long": 63}


class Writing:
    def __init__(self, schema: Schema, column: pa.Array) -> None:
        """Compile a column. Raises `NotEncodable` if it does not match the schema."""
        self.packing = Packing()
        self.constants = Constants()
        self.code: list[int] = []
        self._path: list[str] = []
        self._open: list[Record] = []
        self._is_whole = isinstance(schema, Primitive) and schema.kind == "bytes"
        self._value(schema, column, 0)
        self.code.append(op.END)

    def _refuse(self, detail: str) -> NotEncodable:
        place = "".join(self._path).removeprefix(".")
        return NotEncodable(f"{place}: {detail}" if place else detail)

    def _cast(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        if column.type == kind:
            return column
        try:
            return column.cast(kind)
        except pa.ArrowException as error:
            raise self._refuse(f"a column of {column.type} is not one of {kind}: {error}") from None

    def _value(self, schema: Schema, column: pa.Array, depth: int) -> None:
        if isinstance(schema, Union):
            self._union(schema, column, depth)
            return
        if is_null(schema):
            if column.null_count != len(column):
                raise self._refuse("a value where the schema has only null")
            return
        if column.null_count:
            self.code += [op.CHECK, self.packing.validity(column)]
        self._present(schema, column, depth)

    def _present(self, schema: Schema, column: pa.Array, depth: int) -> None:
        """Emit code for a value that is not null."""
        if isinstance(schema, Primitive):
            self._primitive(schema, column)
        elif isinstance(schema, Fixed):
            self._fixed(schema, column)
        elif isinstance(schema, Enum):
            self.code += [op.ENUM, self.packing.symbols(self._cast(column, pa.string()), schema.symbols)]
        elif isinstance(schema, Union):
            raise AssertionError("a union cannot contain a union")
        elif depth >= DEPTH_MAX:
            self.code += [op.FAIL, Reason.TOO_DEEP]
        elif isinstance(schema, Record):
            self._record(schema, column, depth)
        else:
            self._list(schema, column, depth)

    def _union(self, schema: Union, column: pa.Array, depth: int) -> None:
        null = _null_branch(schema)
        if all(is_null(branch) for branch in schema.branches):
            self._nothing(schema, column)
            return
        single = widened(schema)
        if single is None:
            self._members(schema, column, null, depth)
            return
        branch = next(index for index, known in enumerate(schema.branches) if _stands_for(known, single))
        if column.null_count == 0:
            self._put_branch(branch)
            self._present(schema.branches[branch], column, depth)
        elif null < 0:
            self.code += [op.CHECK, self.packing.validity(column)]
            self._put_branch(branch)
            self._present(schema.branches[branch], column, depth)
        else:
            opening = len(self.code)
            self.code += [op.NULLABLE, self.packing.validity(column), null, branch, 0]
            self._present(schema.branches[branch], column, depth)
            self.code[opening + 4] = len(self.code)

    def _nothing(self, schema: Union, column: pa.Array) -> None:
        if column.null_count != len(column):
            raise self._refuse("a value where the schema has only null")
        if schema.branches:
            self._put_branch(0)
        else:
            self.code += [op.FAIL, Reason.INVALID_VALUE]

    def _put_branch(self, branch: int) -> None:
        self._put(Encoder(Primitive("long")).encode(branch))

    def _put(self, value: bytes) -> None:
        if value:
            self.code += [op.PUT, self.constants.place(value), len(value)]

    def _members(self, schema: Union, column: pa.Array, null: int, depth: int) -> None:
        if not isinstance(column, pa.StructArray):
            raise self._refuse("a union of several types must be a struct of members")
        members = [(index, branch) for index, branch in enumerate(schema.branches) if not is_null(branch)]
        # A null struct hides the values of its members.
        columns = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        known = [
            (f"member{place}", index, branch)
            for place, (index, branch) in enumerate(members)
            if f"member{place}" in columns
        ]
        opening = len(self.code)
        self.code += [op.MEMBERS, len(known), null, 0]
        for name, index, _ in known:
            self.code += [self.packing.validity(columns[name]), index, 0]
        jumps: list[int] = []
        for place, (name, _, branch) in enumerate(known):
            self.code[opening + 6 + 3 * place] = len(self.code)
            self._path.append(f".{name}")
            self._present(branch, columns[name], depth)
            self._path.pop()
            self.code += [op.JUMP, 0]
            jumps.append(len(self.code) - 1)
        for at in (opening + 3, *jumps):
            self.code[at] = len(self.code)

    def _record(self, schema: Record, column: pa.Array, depth: int) -> None:
        if not isinstance(column, pa.StructArray):
            raise self._refuse(f"a column of {column.type} is not a struct")
        names = [field.name for field in column.type]
        unknown = set(names) - {field.name for field in schema.fields}
        if unknown or len(set(names)) != len(names):
            raise self._refuse(
                f"the schema has no field {', '.join(sorted(unknown))}" if unknown else "duplicate names"
            )
        self._open.append(schema)
        for field in schema.fields:
            self._path.append(f".{field.name}")
            if field.name in names:
                self._value(field.schema, column.field(names.index(field.name)), depth + 1)
            else:
                self._missing(field)
            self._path.pop()
        self._open.pop()

    def _missing(self, field: Field) -> None:
        """Emit a default. If the columns of a recursive record end here, emit nothing."""
        schema = field.schema
        try:
            if field.has_default:
                self._put(Encoder(schema).encode(default_value(schema, field.default)))
                return
        except (EncodeError, ValueError) as error:
            raise self._refuse(f"its default cannot be written: {error}") from None
        if not self._holds_itself(schema):
            raise self._refuse("the column is missing, and the field has no default")
        if isinstance(schema, (Array, Map)):
            self._put(b"\0")
        elif isinstance(schema, Union) and _null_branch(schema) >= 0:
            self._put_branch(_null_branch(schema))
        else:
            self.code += [op.FAIL, Reason.TOO_DEEP]

    def _holds_itself(self, schema: Schema) -> bool:
        if isinstance(schema, Union):
            return any(self._holds_itself(branch) for branch in schema.branches)
        if isinstance(schema, (Array, Map)):
            return self._holds_itself(schema.items if isinstance(schema, Array) else schema.values)
        return schema in self._open

    def _list(self, schema: Array | Map, column: pa.Array, depth: int) -> None:
        is_map = isinstance(schema, Map)
        if isinstance(column, (pa.LargeListArray, pa.FixedSizeListArray)):
            column = self._cast(column, pa.list_(column.type.value_type))
        if not isinstance(column, pa.MapArray if is_map else pa.ListArray) or (
            not is_map and isinstance(column, pa.MapArray)
        ):
            raise self._refuse(f"a column of {column.type} is not {'a map' if is_map else 'a list'}")
        item = schema.values if isinstance(schema, Map) else schema.items
        offsets, first, end = self.packing.list_offsets(column)
        opening = len(self.code)
        self.code += [op.LIST, offsets, int(not is_map and is_zero_size(item)), 0]
        if isinstance(column, pa.MapArray):
            self._value(Primitive("string"), column.keys.slice(first, end - first), depth + 1)
            values = column.items
        else:
            values = column.values
        self._path.append("{}" if is_map else "[]")
        self._value(item, values.slice(first, end - first), depth + 1)
        self._path.pop()
        self.code.append(op.NEXT)
        self.code[opening + 3] = len(self.code)

    def _primitive(self, schema: Primitive, column: pa.Array) -> None:
        column = self._cast(column, scalar_type(schema))
        logical = schema.logical
        match schema.kind:
            case "boolean":
                self.code += [op.BOOLEAN, self.packing.booleans(column)]
            case "int" | "long" as kind:
                low, end = (-(1 << _BITS[kind]), 1 << _BITS[kind])
                if logical is not None:
                    low, end = RANGES.get(logical.name, (low, end))
                is_int = kind == "int"
                buffer = self.packing.cells(column, 4 if is_int else 8)
                self.code += [op.INT if is_int else op.LONG, buffer, low, end - 1]
            case "float":
                self.code += [op.FLOAT, self.packing.cells(column, 4)]
            case "double":
                self.code += [op.DOUBLE, self.packing.cells(column, 8)]
            case "string":
                self._text(column, op.IS_UTF8 if logical is None else op.IS_UUID, None)
            case "bytes" if logical is not None and is_arrow_decimal(logical):
                self._decimal(logical, column, op.UNSIZED if self._is_whole else op.SIZED)
            case _:
                self._text(column, op.ANY_BYTES if logical is None else op.IS_DECIMAL, logical)

    def _text(self, column: pa.Array, check: int, decimal: Logical | None) -> None:
        bounds = (0, 0) if decimal is None else self.constants.decimal_bounds(decimal)
        self.code += [op.WHOLE if self._is_whole else op.TEXT, *self.packing.text(column), check, *bounds]

    def _decimal(self, logical: Logical, column: pa.Array, size: int) -> None:
        width = column.type.bit_width // 8
        place, _ = self.constants.decimal_bounds(logical)
        self.code += [op.DECIMAL, self.packing.raw(column, width), width, size, place]

    def _fixed(self, schema: Fixed, column: pa.Array) -> None:
        logical = schema.logical
        column = self._cast(column, scalar_type(schema))
        if logical is not None and is_arrow_decimal(logical):
            self._decimal(logical, column, schema.size)
        elif logical is not None and logical.name == "uuid":
            self.code += [op.UUID_FIXED, *self.packing.text(column)]
        elif logical is not None and logical.name == "duration":
            parts = [self._cast(column.field(name), pa.uint32()) for name in DURATION_PARTS]
            for part in parts:
                if part.null_count:
                    self.code += [op.CHECK, self.packing.validity(part)]
            self.code += [op.DURATION, *(self.packing.cells(part, 4) for part in parts)]
        else:
            bounds = (0, 0) if logical is None else self.constants.decimal_bounds(logical)
            check = op.ANY_BYTES if logical is None else op.IS_DECIMAL
            self.code += [op.FIXED, self.packing.raw(column, schema.size), schema.size, check, *bounds]


def _null_branch(schema: Union) -> int:
    return next((index for index, branch in enumerate(schema.branches) if is_null(branch)), -1)


def _stands_for(branch: Schema, single: Schema) -> bool:
    return branch is single or (
        isinstance(branch, Primitive) and isinstance(single, Primitive) and branch.kind == single.kind
    )
