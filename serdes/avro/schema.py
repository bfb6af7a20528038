"""An Avro schema as a graph of typed nodes, for the decoder, encoder, columnar planner and JSON encoding.

Follows the Avro 1.12 specification, "Schema Declaration" and "Logical Types". `registry.formats.avro` parses the text
and decides whether a schema can be registered. This module contains only the parts that decoding needs. An unknown or
invalid logical type is ignored, as the specification requires.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from headgate.registry.formats import avro
from headgate.registry.formats.avro import types as avro_types

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

DECIMAL_PRECISION_MAX: Final = 1000
"""Digits of a decimal. Arrow's limit is 76. A decimal with a higher precision is treated as plain bytes."""

_INT_LOGICAL: Final = frozenset({"date", "time-millis"})
_LONG_LOGICAL: Final = frozenset(
    {"time-micros"}
    | {f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")}
)


@dataclass(frozen=True, slots=True)
class Logical:
    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    kind: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    name: str
    size: int
    aliases: tuple[str, ...] = ()
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    items: "Schema"


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    values: "Schema"


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    branches: tuple["Schema", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    name: str
    schema: "Schema"
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: object = None
    """The unconverted JSON default. Valid if `has_default`."""


@dataclass(slots=True, eq=False)
class Record:
    """Not frozen: fields of a recursive record refer to the record, so they are set at the end of parsing."""

    name: str
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    zero_size: bool = field(default=False, repr=False)
    """Whether all values take zero bytes."""


Schema: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Record
Named: TypeAlias = Fixed | Enum | Record


def parse(text: str, references: Mapping[str, str] | None = None) -> Schema:
    """Parse a schema. `references` contains the referenced texts by name, dependencies first.

    Raises `InvalidSchema` and no other error.
    """
    bare = text.strip()
    # An unquoted name is not JSON, but some clients write primitive schemas like this.
    text = f'"{bare}"' if bare in PRIMITIVES else text
    return _Conversion().convert(avro.parse(text, references or {}, strict=False).root)


def type_name(schema: Schema) -> str:
    """The name of this schema as a union branch: the full name of a named type, otherwise the type."""
    if isinstance(schema, Primitive):
        return schema.kind
    if isinstance(schema, (Record, Enum, Fixed)):
        return schema.name
    if isinstance(schema, Array):
        return "array"
    return "map" if isinstance(schema, Map) else "union"


def unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def is_zero_size(schema: Schema) -> bool:
    """Whether all values take zero bytes. The remaining bytes do not limit the number of such items."""
    if isinstance(schema, Primitive):
        return schema.kind == "null"
    if isinstance(schema, Fixed):
        return schema.size == 0
    return isinstance(schema, Record) and schema.zero_size


class _Conversion:
    """Converts the registry's type tree.

    Records are converted from a work list, because chains can exceed the stack.
    """

    def __init__(self) -> None:
        self._named: dict[avro_types.Named, Named] = {}
        self._work: list[tuple[avro_types.Record, Record]] = []

    def convert(self, root: avro_types.AvroType) -> Schema:
        converted = self._convert(root)
        records: list[Record] = []
        while self._work:
            declared, record = self._work.pop()
            record.fields = tuple(self._field(field) for field in declared.fields)
            records.append(record)
        changed = True
        while changed:
            changed = False
            for record in reversed(records):
                if not record.zero_size and all(is_zero_size(field.schema) for field in record.fields):
                    record.zero_size = changed = True
        return converted

    def _field(self, declared: avro_types.Field) -> Field:
        default = declared.default if declared.has_default else None
        return Field(declared.name, self._convert(declared.type), declared.aliases, declared.has_default, default)

    def _convert(self, declared: avro_types.AvroType) -> Schema:
        if isinstance(declared, avro_types.Primitive):
            return Primitive(declared.kind, _logical_of(declared.properties, declared.kind))
        if isinstance(declared, avro_types.Array):
            return Array(self._convert(declared.items))
        if isinstance(declared, avro_types.Map):
            return Map(self._convert(declared.values))
        if isinstance(declared, avro_types.Union):
            return Union(tuple(self._convert(branch) for branch in declared.branches))
        known = self._named.get(declared)
        if known is None:
            known = self._named[declared] = self._new(declared)
        return known

    def _new(self, declared: avro_types.Named) -> Named:
        name, aliases = declared.name.full, tuple(alias.full for alias in declared.aliases)
        if isinstance(declared, avro_types.Enum):
            return Enum(name, declared.symbols, declared.default, aliases)
        if isinstance(declared, avro_types.Fixed):
            return Fixed(name, declared.size, aliases, _logical_of(declared.properties, "fixed", declared.size))
        record = Record(name, aliases)
        self._work.append((declared, record))
        return record


def _logical_of(properties: Mapping[str, object], kind: str, size: int = 0) -> Logical | None:
    name = properties.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(properties, kind, size)
    fits = (
        (kind == "int" and name in _INT_LOGICAL)
        or (kind == "long" and name in _LONG_LOGICAL)
        or (name == "uuid" and (kind == "string" or size == 16))
        or (name == "duration" and size == 12)
    )
    return Logical(name) if fits else None


def _decimal(properties: Mapping[str, object], kind: str, size: int) -> Logical | None:
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        return None
    if not 0 < precision <= DECIMAL_PRECISION_MAX or (kind == "fixed" and (size == 0 or precision > _digits(size))):
        return None
    return Logical("decimal", precision, scale)


def _digits(size: int) -> int:
    """The number of decimal digits that always fit into `size` bytes. 512 bytes exceed the largest precision."""
    return len(str((1 << (8 * min(size, 512) - 1)) - 1)) - 1
