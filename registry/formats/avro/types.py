"""The type tree of an Avro schema (Avro 1.12, "Schema Declaration").

`reader` builds the nodes, and nothing changes them afterwards. Nodes compare by identity: a recursive type refers to
the same node again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
TYPE_NAMES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}

Properties: TypeAlias = Mapping[str, Any]


class _NoDefault:
    """Marks a field without a default. None is a valid default."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: "AvroType"
    properties: Properties = field(default_factory=dict)
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: "AvroType"
    properties: Properties = field(default_factory=dict)
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: "list[AvroType]"
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Name:
    """A name and its namespace; "" is the null namespace."""

    simple: str
    namespace: str

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple

    def relative_to(self, namespace: str) -> str:
        """The shortest name inside the given namespace. A name that equals a type name needs its namespace."""
        if self.namespace == namespace and self.simple not in TYPE_NAMES:
            return self.simple
        return self.full


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: "AvroType"
    default: Any = NO_DEFAULT
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    fields: list[Field] = field(default_factory=list)
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    declared_as: str = "record"
    kind: str = "record"


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    size: int
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    kind: str = "fixed"


Named: TypeAlias = Record | Enum | Fixed
AvroType: TypeAlias = Primitive | Array | Map | Union | Record | Enum | Fixed
