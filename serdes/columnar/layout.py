"""The columns of a reader schema: the buffers of each value, and the Arrow types.

A *scope* counts values: the rows of the batch, or all items of one array or map column.

Unions:

- Null and one other type: that type, nullable.
- int and long: a long. float and double: a double.
- All others: a struct of nullable members `member0`, `member1` and so on, as in Spark's `from_avro`.

All Arrow fields are nullable, because poison rows have no values.

A recursive record is repeated `recursion_max` times. The field below that is omitted, and a row with a value there is
TOO_DEEP.
"""

from dataclasses import dataclass, field
from enum import Enum as PlainEnum
from typing import Final, TypeAlias

from pyarrow import lib as pa

from headgate.serdes.avro.column_size import COLUMNS_MAX, RECURSION_MAX_DEFAULT
from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union
from headgate.serdes.columnar.arrow_types import DURATION_PARTS, is_arrow_decimal, scalar_type
from headgate.serdes.columnar.errors import SchemaTooLarge

ROWS: Final = 0
"""The scope of the batch."""


class Role(PlainEnum):
    """The size of a buffer: `CELLS` by its scope, `OFFSETS` by its scope plus one, `BYTES` by the written data."""

    CELLS = "cells"
    OFFSETS = "offsets"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Buffer:
    role: Role
    scope: int
    width: int
    """Bytes per element."""
    unit: int
    """The unit of its position in the arena, in bytes: the element size of the view for writing."""


@dataclass(frozen=True, slots=True, eq=False)
class Nothing:
    """A column of nulls without a buffer."""

    arrow: pa.DataType = field(default_factory=pa.null)
    validity: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values of fixed width: numbers, booleans (a byte each until the Arrow array is built).

    `is_raw`: fixed and decimals.
    """

    arrow: pa.DataType
    buffer: int
    width: int
    validity: int | None
    is_raw: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    arrow: pa.DataType
    offsets: int
    data: int
    validity: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """`children` contains None for omitted fields and is parallel to `names`. `is_union` marks a union."""

    arrow: pa.DataType
    names: tuple[str, ...]
    children: tuple["Node | None", ...]
    validity: int | None
    is_union: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class List:
    """An array, or a map if `keys` is set."""

    arrow: pa.DataType
    offsets: int
    scope: int
    items: "Node"
    validity: int | None
    keys: Text | None = None


Node: TypeAlias = Nothing | Cells | Text | Struct | List


@dataclass(frozen=True, slots=True)
class Layout:
    root: Node
    buffers: tuple[Buffer, ...]
    scopes: int
    recursion_max: int


def lay_out(reader: Schema, recursion_max: int = RECURSION_MAX_DEFAULT) -> Layout:
    """Create the layout. Raises `SchemaTooLarge` for too many columns."""
    builder = _Builder(recursion_max)
    root = builder.node(reader, ROWS, (), nullable=False)
    assert root is not None, "the outermost record is not inside itself"
    return Layout(root, tuple(builder.buffers), builder.scopes, recursion_max)


def widened(union: Union) -> Schema | None:
    """The single type that represents all branches, or None if the union needs a struct of members."""
    members = [branch for branch in union.branches if not is_null(branch)]
    if len(members) == 1:
        return members[0]
    kinds = {branch.kind if isinstance(branch, Primitive) and branch.logical is None else "" for branch in members}
    if kinds == {"int", "long"}:
        return Primitive("long")
    return Primitive("double") if kinds == {"float", "double"} else None


def is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"


class _Builder:
    def __init__(self, recursion_max: int) -> None:
        self.recursion_max = recursion_max
        self.buffers: list[Buffer] = []
        self.scopes = 1

    def node(self, schema: Schema, scope: int, open_levels: tuple[Schema, ...], *, nullable: bool) -> Node | None:
        if isinstance(schema, (Primitive, Fixed)):
            return self._scalar(schema, scope, nullable)
        if isinstance(schema, Enum):
            return self._text(pa.string(), scope, nullable)
        if isinstance(schema, Record):
            return self._record(schema, scope, open_levels, nullable)
        if isinstance(schema, Union):
            return self._union(schema, scope, open_levels, nullable)
        return self._list(schema, scope, open_levels, nullable)

    def _buffer(self, role: Role, scope: int, width: int, unit: int) -> int:
        if len(self.buffers) >= COLUMNS_MAX:
            raise SchemaTooLarge(f"the reader's schema needs more than {COLUMNS_MAX} buffers")
        self.buffers.append(Buffer(role, scope, width, unit))
        return len(self.buffers) - 1

    def _validity(self, scope: int, nullable: bool) -> int | None:
        return self._buffer(Role.CELLS, scope, 1, 1) if nullable else None

    def _cells(self, arrow: pa.DataType, scope: int, width: int, nullable: bool) -> Cells:
        validity = self._validity(scope, nullable)
        return Cells(arrow, self._buffer(Role.CELLS, scope, width, width), width, validity)

    def _raw(self, arrow: pa.DataType, scope: int, width: int, nullable: bool) -> Cells:
        validity = self._validity(scope, nullable)
        return Cells(arrow, self._buffer(Role.CELLS, scope, width, 1), width, validity, is_raw=True)

    def _text(self, arrow: pa.DataType, scope: int, nullable: bool) -> Text:
        validity = self._validity(scope, nullable)
        return Text(arrow, self._buffer(Role.OFFSETS, scope, 4, 4), self._buffer(Role.BYTES, scope, 1, 1), validity)

    def _scalar(self, schema: Primitive | Fixed, scope: int, nullable: bool) -> Node:
        arrow = scalar_type(schema)
        if arrow == pa.null():
            return Nothing()
        if arrow in (pa.string(), pa.binary()):
            return self._text(arrow, scope, nullable)
        if schema.logical is not None and schema.logical.name == "duration":
            validity = self._validity(scope, nullable)
            parts = tuple(self._cells(pa.uint32(), scope, 4, False) for _ in DURATION_PARTS)
            return Struct(arrow, DURATION_PARTS, parts, validity)
        if arrow == pa.bool_():
            return self._cells(arrow, scope, 1, nullable)
        if isinstance(schema, Fixed) or is_arrow_decimal(schema.logical):
            return self._raw(arrow, scope, arrow.bit_width // 8, nullable)
        return self._cells(arrow, scope, arrow.bit_width // 8, nullable)

    def _record(self, schema: Record, scope: int, open_levels: tuple[Schema, ...], nullable: bool) -> Struct | None:
        if open_levels.count(schema) > self.recursion_max or len(open_levels) >= DEPTH_MAX:
            return None
        validity = self._validity(scope, nullable)
        inner = (*open_levels, schema)
        children = tuple(self.node(known.schema, scope, inner, nullable=False) for known in schema.fields)
        return _struct(tuple(known.name for known in schema.fields), children, validity)

    def _union(self, schema: Union, scope: int, open_levels: tuple[Schema, ...], nullable: bool) -> Node | None:
        nullable = nullable or any(is_null(branch) for branch in schema.branches)
        if all(is_null(branch) for branch in schema.branches):
            return Nothing()
        single = widened(schema)
        if single is not None:
            return self.node(single, scope, open_levels, nullable=nullable)
        validity = self._validity(scope, nullable)
        members = [branch for branch in schema.branches if not is_null(branch)]
        children = tuple(self.node(branch, scope, open_levels, nullable=True) for branch in members)
        if all(child is None for child in children):
            return None
        return _struct(tuple(f"member{index}" for index in range(len(members))), children, validity, is_union=True)

    def _list(self, schema: Array | Map, scope: int, open_levels: tuple[Schema, ...], nullable: bool) -> List | None:
        if len(open_levels) >= DEPTH_MAX:
            return None
        before, scopes_before = len(self.buffers), self.scopes
        validity = self._validity(scope, nullable)
        offsets = self._buffer(Role.OFFSETS, scope, 4, 4)
        inner = self.scopes
        self.scopes += 1
        keys = self._text(pa.string(), inner, False) if isinstance(schema, Map) else None
        items = self.node(
            schema.values if isinstance(schema, Map) else schema.items, inner, (*open_levels, schema), nullable=False
        )
        if items is None:
            # The list contains only the omitted recursive record, so the list is omitted, too.
            del self.buffers[before:]
            self.scopes = scopes_before
            return None
        arrow = pa.list_(items.arrow) if keys is None else pa.map_(pa.string(), items.arrow)
        return List(arrow, offsets, inner, items, validity, keys)


def _struct(
    names: tuple[str, ...], children: tuple[Node | None, ...], validity: int | None, is_union: bool = False
) -> Struct:
    fields = [(name, child.arrow) for name, child in zip(names, children, strict=True) if child is not None]
    return Struct(pa.struct(fields), names, children, validity, is_union)
