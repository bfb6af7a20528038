"""Reads the JSON of an Avro schema into a type tree, with the error messages of Java's parser (Avro 1.12).

Names may be used before their definition. An enum or fixed may be defined twice with the same content.

Stricter than Java, because no reader could use these schemas:

- The default of an enum must be a symbol.
- The default of a fixed must have its size, and characters of a bytes default must be below U+0100.
- A decimal needs a precision that its type can hold.
- A record must not be defined inside itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from headgate.registry import limits
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro.names import check_name, full_name, read_alias_texts, read_aliases, read_name
from headgate.registry.formats.avro.types import (
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Primitive,
    Properties,
    Record,
    Union,
)
from headgate.registry.formats.avro.values import decimal_problem, fits
from headgate.registry.formats.json_text import brief

_Leaf = TypeVar("_Leaf", Enum, Fixed)

_SCHEMA_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _SCHEMA_RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})


class Reader:
    """Reads the referenced schemas, then the schema itself, into one table of names.

    `strict` checks names and defaults. Use it for new schemas; a stored schema keeps its names and defaults.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.names: dict[str, Named] = {}
        self._forward: list[tuple[str, str, str, Callable[[AvroType], None]]] = []
        self._unions: list[tuple[Union, str]] = []
        self._defaults: list[tuple[Field, str]] = []

    def read(self, document: Any) -> AvroType:
        """Read one schema. All names must be defined in it or in a schema read before."""
        root: list[AvroType] = []
        self._type(document, "", "", 0, root.append)
        for name, namespace, path, put in self._forward:
            known = self._find(name, namespace)
            if known is None:
                raise InvalidSchema(f"Undefined schema: {full_name(name, namespace)}", path)
            put(known)
        self._forward.clear()
        for union, path in self._unions:
            _check_union(union, path)
        self._unions.clear()
        if self.strict:
            for field, path in self._defaults:
                if not fits(field.type, field.default):
                    given, wanted = brief(field.default), _describe(field.type)
                    raise InvalidSchema(
                        f"Invalid default for field {field.name}: {given} not a {wanted}", f"{path}/default"
                    )
        self._defaults.clear()
        return root[0]

    def _find(self, name: str, namespace: str) -> Named | None:
        return self.names.get(full_name(name, namespace)) or self.names.get(name.removeprefix("."))

    def _type(self, document: Any, namespace: str, path: str, depth: int, put: Callable[[AvroType], None]) -> None:
        if depth > limits.SCHEMA_DEPTH_MAX:
            raise InvalidSchema(f"The schema is nested more than {limits.SCHEMA_DEPTH_MAX} types deep", path)
        if isinstance(document, str):
            self._reference(document, {}, namespace, path, put)
        elif isinstance(document, list):
            union = Union([])
            put(union)
            self._unions.append((union, path))
            for index, branch in enumerate(document):
                union.branches.append(_PENDING)
                self._type(branch, namespace, f"{path}/{index}", depth + 1, partial(union.branches.__setitem__, index))
        elif isinstance(document, dict):
            kind = document.get("type")
            if not isinstance(kind, str):
                raise InvalidSchema(f"No type: {brief(document)}", path)
            if kind in ("record", "error"):
                self._record(document, kind, namespace, path, depth, put)
            elif kind == "enum":
                put(self._enum(document, namespace, path))
            elif kind == "fixed":
                put(self._fixed(document, namespace, path))
            elif kind == "array":
                self._container(document, "items", "Array", namespace, path, depth, put)
            elif kind == "map":
                self._container(document, "values", "Map", namespace, path, depth, put)
            else:
                self._reference(kind, document, namespace, path, put)
        else:
            raise InvalidSchema(f"Schema not yet supported: {brief(document)}", path)

    def _reference(
        self, kind: str, document: dict[str, Any], namespace: str, path: str, put: Callable[[AvroType], None]
    ) -> None:
        if kind in PRIMITIVES:
            properties = _properties(document, _SCHEMA_RESERVED)
            if properties:
                self._check_decimal(kind, 0, properties, path)
            put(Primitive(kind, properties))
            return
        known = self._find(kind, namespace)
        if known is None:
            put(_PENDING)
            self._forward.append((kind, namespace, path, put))
        else:
            put(known)

    def _container(
        self,
        document: dict[str, Any],
        key: str,
        label: str,
        namespace: str,
        path: str,
        depth: int,
        put: Callable[[AvroType], None],
    ) -> None:
        if document.get(key) is None:
            raise InvalidSchema(f"{label} has no {key} type: {brief(document)}", path)
        properties = _properties(document, _SCHEMA_RESERVED)
        if key == "items":
            array = Array(_PENDING, properties)
            put(array)
            self._type(document[key], namespace, f"{path}/items", depth + 1, partial(setattr, array, "items"))
        else:
            mapping = Map(_PENDING, properties)
            put(mapping)
            self._type(document[key], namespace, f"{path}/values", depth + 1, partial(setattr, mapping, "values"))

    def _check_name(self, name: str, path: str) -> None:
        if self.strict:
            check_name(name, path)

    def _name(self, document: dict[str, Any], namespace: str, path: str) -> Name:
        return read_name(document, namespace, path, strict=self.strict)

    def _aliases(self, document: dict[str, Any], namespace: str, path: str) -> tuple[Name, ...]:
        return read_aliases(document, namespace, path, strict=self.strict)

    def _record(
        self,
        document: dict[str, Any],
        declared_as: str,
        namespace: str,
        path: str,
        depth: int,
        put: Callable[[AvroType], None],
    ) -> None:
        name = self._name(document, namespace, path)
        if name.full in self.names:
            raise InvalidSchema(f"Can't redefine: {name.full}", f"{path}/name")
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {brief(document)}", path)
        record = Record(
            name,
            doc=_text(document, "doc"),
            aliases=self._aliases(document, name.namespace, path),
            properties=_properties(document, _SCHEMA_RESERVED),
            declared_as=declared_as,
        )
        self.names[name.full] = record
        put(record)
        positions: dict[str, int] = {}
        for index, field in enumerate(fields):
            place = f"{path}/fields/{index}"
            read = self._field(field, name.namespace, place, depth)
            if read.name in positions:
                raise InvalidSchema(
                    f"Duplicate field {read.name} in record {name.full}: "
                    f"at positions {positions[read.name]} and {index}",
                    place,
                )
            positions[read.name] = index
            record.fields.append(read)

    def _field(self, document: Any, namespace: str, path: str, depth: int) -> Field:
        if not isinstance(document, dict) or not isinstance(document.get("name"), str):
            raise InvalidSchema(f"No field name: {brief(document)}", path)
        name = document["name"]
        self._check_name(name, f"{path}/name")
        if document.get("type") is None:
            raise InvalidSchema(f"No field type: {brief(document)}", path)
        order = document.get("order")
        if order is None:
            order = "ascending"
        elif not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"Unknown order {brief(order)}: ascending, descending or ignore", f"{path}/order")
        field = Field(
            name,
            _PENDING,
            doc=_text(document, "doc"),
            order=order.lower(),
            aliases=tuple(dict.fromkeys(read_alias_texts(document, path))),
            properties=_properties(document, _FIELD_RESERVED),
        )
        self._type(document["type"], namespace, f"{path}/type", depth + 1, partial(setattr, field, "type"))
        if "default" in document:
            default = document["default"]
            if (
                isinstance(default, str)
                and isinstance(field.type, Primitive)
                and field.type.kind in ("float", "double")
            ):
                default = _number_of(default, path)
            field.default = default
            self._defaults.append((field, path))
        return field

    def _enum(self, document: dict[str, Any], namespace: str, path: str) -> Enum:
        name = self._name(document, namespace, path)
        symbols = document.get("symbols")
        if not isinstance(symbols, list):
            raise InvalidSchema(f"Enum has no symbols: {brief(document)}", path)
        seen: set[str] = set()
        for index, symbol in enumerate(symbols):
            place = f"{path}/symbols/{index}"
            if not isinstance(symbol, str):
                raise InvalidSchema(f"Enum symbol is not a string: {brief(symbol)}", place)
            self._check_name(symbol, place)
            if symbol in seen:
                raise InvalidSchema(f"Duplicate enum symbol: {symbol}", place)
            seen.add(symbol)
        default = _text(document, "default")
        if default is not None and default not in seen:
            raise InvalidSchema(
                f"The Enum Default: {default} is not in the enum symbol set: [{', '.join(symbols)}]", f"{path}/default"
            )
        enum = Enum(
            name,
            tuple(symbols),
            default,
            _text(document, "doc"),
            self._aliases(document, name.namespace, path),
            _properties(document, _ENUM_RESERVED),
        )
        known = self.names.get(name.full)
        if isinstance(known, Enum) and known.symbols == enum.symbols and known.properties == enum.properties:
            return known
        return self._define(enum, path)

    def _fixed(self, document: dict[str, Any], namespace: str, path: str) -> Fixed:
        name = self._name(document, namespace, path)
        size = document.get("size")
        if not isinstance(size, int) or isinstance(size, bool):
            raise InvalidSchema(f"Invalid or no size: {brief(document)}", path)
        if size < 0:
            raise InvalidSchema(f"Malformed data. Length is negative: {size}", f"{path}/size")
        if size > limits.ID_MAX:
            raise InvalidSchema(f"Invalid or no size: {size} is more than a Java int", f"{path}/size")
        properties = _properties(document, _SCHEMA_RESERVED)
        self._check_decimal("fixed", size, properties, path)
        aliases = self._aliases(document, name.namespace, path)
        known = self.names.get(name.full)
        if isinstance(known, Fixed) and known.size == size and known.properties == properties:
            return known
        return self._define(Fixed(name, size, _text(document, "doc"), aliases, properties), path)

    def _define(self, named: _Leaf, path: str) -> _Leaf:
        if named.name.full in self.names:
            raise InvalidSchema(f"Can't redefine: {named.name.full}", f"{path}/name")
        self.names[named.name.full] = named
        return named

    def _check_decimal(self, kind: str, size: int, properties: Properties, path: str) -> None:
        if not self.strict or properties.get("logicalType") != "decimal" or kind not in ("bytes", "fixed"):
            return
        problem = decimal_problem(kind, size, properties)
        if problem:
            raise InvalidSchema(problem, path)


_PENDING: Final = Primitive("pending")
"""Placeholder for a type that is not read yet. `Reader.read` replaces all of them."""


def _check_union(union: Union, path: str) -> None:
    seen: set[str] = set()
    for index, branch in enumerate(union.branches):
        if isinstance(branch, Union):
            raise InvalidSchema("Nested union", f"{path}/{index}")
        name = branch.name.full if isinstance(branch, Record | Enum | Fixed) else branch.kind
        if name in seen:
            raise InvalidSchema(f"Duplicate in union:{name}", f"{path}/{index}")
        seen.add(name)


def _properties(document: dict[str, Any], reserved: frozenset[str]) -> Properties:
    return {key: value for key, value in document.items() if key not in reserved}


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) else None


def _number_of(text: str, path: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSchema(f'For input string: "{text}"', f"{path}/default") from None


def _describe(avro_type: AvroType) -> str:
    match avro_type:
        case Record() | Enum() | Fixed():
            return f"{avro_type.kind} {avro_type.name.full}"
        case Union():
            return "union"
        case _:
            return f'"{avro_type.kind}"'
