"""A reader's schema as columns: which buffers each value needs, and what Arrow makes of them.

A *scope* is whatever numbers its values together: the rows of the batch, or all the items of one array or map column.
A union of null and one type is that type, nullable; int with long is a long, float with double a double; any other
union is a struct of nullable members, `member0` and on, as Spark's `from_avro` has it. Every Arrow field is nullable,
since poison leaves a row without values.

A record inside itself is laid out as often as `recursion_max` says; a field that would hold it once more is left out,
and a row that has a value there is TOO_DEEP.
"""

from dataclasses import dataclass, field
from enum import Enum as PlainEnum
from typing import Final, TypeAlias

from pyarrow import lib as pa

from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union
from headgate.serdes.columnar.arrow_types import DURATION_PARTS, is_arrow_decimal, scalar_type
from headgate.serdes.columnar.errors import SchemaTooLarge

ROWS: Final = 0
"""The scope of the batch itself."""

COLUMNS_MAX: Final = 20_000
"""Columns of one reader's schema. Records that name one another in pairs double with every level."""

RECURSION_MAX_DEFAULT: Final = 4
"""Times that a record type may lie inside itself."""


class Role(PlainEnum):
    """How a buffer is sized: `CELLS` by its scope, `OFFSETS` by its scope and one more, `BYTES` by what is written."""

    CELLS = "cells"
    OFFSETS = "offsets"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Buffer:
    role: Role
    scope: int
    width: int
    """Bytes of an element."""
    unit: int
    """Bytes that its place in the arena is counted in: those of the view through which it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class Nothing:
    """A column of nulls, which takes no buffer."""

    arrow: pa.DataType = field(default_factory=pa.null)
    validity: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values of one width: numbers, booleans (a byte each until Arrow gets them); `is_raw` for fixed and decimals."""

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
    """`children` has None where a field is left out; `names` is in step with it. `is_union` where it stands for one."""

    arrow: pa.DataType
    names: tuple[str, ...]
    children: tuple["Node | None", ...]
    validity: int | None
    is_union: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class List:
    """An array, or a map where `keys` is given."""

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


def lay_out(reader: Schema, recursion_max: int = RECURSION_MAX_DEFAULT) -> Layout:
    """Raises `SchemaTooLarge` where the columns would be too many."""
    builder = _Builder(recursion_max)
    root = builder.node(reader, ROWS, (), nullable=False)
    assert root is not None, "the outermost record is not inside itself"
    return Layout(root, tuple(builder.buffers), builder.scopes)


def widened(union: Union) -> Schema | None:
    """The one type that stands for all the branches, or None where a union needs a struct of members."""
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
            # Nothing but the record inside itself once more: the list is left out with it.
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
