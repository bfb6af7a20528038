"""An Avro schema as a graph of typed nodes, for the decoder, the encoder, the columnar planner and JSON.

Follows the Avro 1.12 specification, "Schema Declaration" and "Logical Types". Whether a schema is fit to be registered
is decided by `registry.formats.avro`; here only what decoding needs is read, and checked as far as decoding relies on
it. A logical type that is unknown or does not fit its type is ignored, as the specification asks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from registry.errors import InvalidSchema

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

SCHEMA_DEPTH_MAX = 100
"""Levels of a schema written inside one another: the depth a payload may have, so a deeper one could not be read."""

DECIMAL_PRECISION_MAX = 1000
"""Digits. Ten to this power is computed; Arrow ends at 76. A larger precision makes the type plain bytes."""

_INT_LOGICAL = frozenset({"date", "time-millis"})
_LONG_LOGICAL = frozenset(
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
    """As JSON, unconverted; meaningful where `has_default`."""


@dataclass(slots=True, eq=False)
class Record:
    """Not frozen: the fields of a recursive record refer to it, so they are set once, at the end of its parsing."""

    name: str
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    zero_size: bool = field(default=False, repr=False)
    """Whether every value of it takes no bytes at all."""


Schema: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Record
Named: TypeAlias = Fixed | Enum | Record


def parse(text: str, references: Mapping[str, str] | None = None) -> Schema:
    """Read a schema. `references` holds the texts it refers to, by name, dependencies first.

    Raises `InvalidSchema`, and nothing else, for any text.
    """
    parser = _Parser()
    for name, referenced in (references or {}).items():
        parsed = parser.parse(_load(referenced), "", f"reference {name}", 0)
        if isinstance(parsed, (Record, Enum, Fixed)):
            parser.names.setdefault(name, parsed)
    return parser.parse(_load(text), "", "", 0)


def type_name(schema: Schema) -> str:
    """The name of the branch this schema makes in a union: the full name of a named type, else the type."""
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
    """Whether every value of the schema is encoded in no bytes: such items cannot be bounded by the bytes left."""
    if isinstance(schema, Primitive):
        return schema.kind == "null"
    if isinstance(schema, Fixed):
        return schema.size == 0
    return isinstance(schema, Record) and schema.zero_size


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # A bare name is not JSON, but is how some clients write a primitive schema.
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise InvalidSchema(f"not JSON: {error}") from None


class _Parser:
    def __init__(self) -> None:
        self.names: dict[str, Named] = {}

    def parse(self, declared: object, namespace: str, path: str, depth: int) -> Schema:
        if depth > SCHEMA_DEPTH_MAX:
            raise InvalidSchema(f"nested more than {SCHEMA_DEPTH_MAX} levels deep", path)
        if isinstance(declared, str):
            return self._named(declared, namespace, path)
        if isinstance(declared, list):
            return self._union(declared, namespace, path, depth)
        if not isinstance(declared, dict):
            raise InvalidSchema(f"a schema is a string, an array or an object, not {declared!r:.40}", path)
        kind = declared.get("type")
        match kind:
            case "record" | "error":
                return self._record(declared, namespace, path, depth)
            case "enum":
                return self._enum(declared, namespace, path)
            case "fixed":
                return self._fixed(declared, namespace, path)
            case "array":
                return Array(self.parse(_required(declared, "items", path), namespace, f"{path}/items", depth + 1))
            case "map":
                return Map(self.parse(_required(declared, "values", path), namespace, f"{path}/values", depth + 1))
            case str() if kind in PRIMITIVES:
                return Primitive(kind, _logical_of(declared, kind))
            case None:
                raise InvalidSchema("no type", path)
            case _:
                return self.parse(kind, namespace, f"{path}/type", depth + 1)

    def _named(self, name: str, namespace: str, path: str) -> Schema:
        if name in PRIMITIVES:
            return Primitive(name)
        found = self.names.get(_full_name(name, namespace)) or self.names.get(name)
        if found is None:
            raise InvalidSchema(f"unknown type {name!r:.200}", path)
        return found

    def _union(self, declared: list[object], namespace: str, path: str, depth: int) -> Union:
        branches: list[Schema] = []
        seen: set[str] = set()
        for index, branch in enumerate(declared):
            parsed = self.parse(branch, namespace, f"{path}/{index}", depth + 1)
            name = type_name(parsed)
            if isinstance(parsed, Union) or name in seen:
                raise InvalidSchema("a union holds neither a union nor the same type twice", f"{path}/{index}")
            seen.add(name)
            branches.append(parsed)
        return Union(tuple(branches))

    def _record(self, declared: dict[str, object], namespace: str, path: str, depth: int) -> Record:
        name, inner = _declared_name(declared, namespace, path)
        record = Record(name, _aliases(declared, inner))
        self._define(record, path)
        entries = _required(declared, "fields", path)
        if not isinstance(entries, list):
            raise InvalidSchema("fields is not an array", path)
        fields: list[Field] = []
        for index, entry in enumerate(entries):
            place = f"{path}/fields/{index}"
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise InvalidSchema("a field is an object with a name", place)
            if "type" not in entry:
                raise InvalidSchema(f"field {entry['name']!r:.200} has no type", place)
            fields.append(
                Field(
                    entry["name"],
                    self.parse(entry["type"], inner, f"{place}/type", depth + 1),
                    tuple(alias for alias in _list(entry.get("aliases")) if isinstance(alias, str)),
                    "default" in entry,
                    entry.get("default"),
                )
            )
        if len({known.name for known in fields}) != len(fields):
            raise InvalidSchema("two fields of one name", path)
        record.fields = tuple(fields)
        record.zero_size = all(is_zero_size(known.schema) for known in fields)
        return record

    def _enum(self, declared: dict[str, object], namespace: str, path: str) -> Enum:
        name, inner = _declared_name(declared, namespace, path)
        symbols = _required(declared, "symbols", path)
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise InvalidSchema("symbols is not an array of strings", path)
        if len(set(symbols)) != len(symbols):
            raise InvalidSchema("a symbol appears twice", path)
        default = declared.get("default")
        if default is not None and default not in symbols:
            raise InvalidSchema(f"the default {default!r:.40} is not one of the symbols", path)
        enum = Enum(name, tuple(symbols), default if isinstance(default, str) else None, _aliases(declared, inner))
        self._define(enum, path)
        return enum

    def _fixed(self, declared: dict[str, object], namespace: str, path: str) -> Fixed:
        name, inner = _declared_name(declared, namespace, path)
        size = _required(declared, "size", path)
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
            raise InvalidSchema(f"a fixed of size {size!r:.40}", path)
        fixed = Fixed(name, size, _aliases(declared, inner), _logical_of(declared, "fixed", size))
        self._define(fixed, path)
        return fixed

    def _define(self, named: Named, path: str) -> None:
        if named.name in self.names:
            raise InvalidSchema(f"type {named.name!r:.200} is defined twice", path)
        self.names[named.name] = named


def _required(declared: dict[str, object], key: str, path: str) -> object:
    if key not in declared:
        raise InvalidSchema(f"no {key}", path)
    return declared[key]


def _declared_name(declared: dict[str, object], namespace: str, path: str) -> tuple[str, str]:
    """The full name, and the namespace that holds inside."""
    name, own = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str) or not name:
        raise InvalidSchema("a named type without a name", path)
    full = _full_name(name, own if isinstance(own, str) else namespace)
    return full, full.rpartition(".")[0]


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _aliases(declared: dict[str, object], namespace: str) -> tuple[str, ...]:
    aliases = _list(declared.get("aliases"))
    return tuple(_full_name(alias, namespace) for alias in aliases if isinstance(alias, str))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _logical_of(declared: dict[str, object], kind: str, size: int = 0) -> Logical | None:
    name = declared.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(declared, kind, size)
    fits = (
        (kind == "int" and name in _INT_LOGICAL)
        or (kind == "long" and name in _LONG_LOGICAL)
        or (name == "uuid" and (kind == "string" or size == 16))
        or (name == "duration" and size == 12)
    )
    return Logical(name) if fits else None


def _decimal(declared: dict[str, object], kind: str, size: int) -> Logical | None:
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision == 0:
        return None
    if precision > DECIMAL_PRECISION_MAX:
        return None
    if kind == "fixed" and (size == 0 or precision > _digits(size)):
        return None
    return Logical("decimal", precision, scale)


def _digits(size: int) -> int:
    """How many decimal digits always fit into `size` bytes; 512 bytes hold more than the largest precision."""
    return len(str((1 << (8 * min(size, 512) - 1)) - 1)) - 1
