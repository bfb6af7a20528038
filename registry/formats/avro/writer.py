"""Writes an Avro type tree as JSON text, in canonical or normalized form.

Follows `Schema.toString` of Java's Avro 1.12, because registries must agree on which texts are the same schema. The
order of attributes is: type, name, namespace, doc, attributes of the type, properties, aliases. Normalization sorts
properties and aliases, removes empty docs and writes defaults in the format of their type.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from headgate.registry.formats.avro.types import (
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
from headgate.registry.formats.json_text import dump, text_of

_LOGICAL_BASES: Final = {
    "big-decimal": "bytes",
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}


def write(avro_type: AvroType, known: Iterable[Named] = (), *, normalize: bool = False) -> str:
    """The text of `avro_type`. Types in `known` are written as names."""
    writer = _Writer({id(named) for named in known}, normalize)
    writer.type(avro_type, "")
    return "".join(writer.parts)


def beginning(avro_type: AvroType, chars_max: int) -> str:
    """The first `chars_max` characters of the text. The cost depends on `chars_max` only."""
    writer = _Writer(set(), normalize=False)
    room = chars_max

    def put(part: str) -> None:
        nonlocal room
        writer.parts.append(part)
        room -= len(part)
        if room < 0:
            raise _Enough

    writer.put = put
    with suppress(_Enough):
        writer.type(avro_type, "")
    text = "".join(writer.parts)
    return text if len(text) <= chars_max else f"{text[:chars_max]}..."


class _Enough(Exception):
    """Stops the writer after enough characters."""


class _Writer:
    def __init__(self, known: set[int], normalize: bool) -> None:
        self.parts: list[str] = []
        self.put: Callable[[str], None] = self.parts.append
        self.known = known
        self.normalize = normalize

    def type(self, avro_type: AvroType, namespace: str) -> None:
        put = self.put
        match avro_type:
            case Primitive():
                if avro_type.properties:
                    put(f'{{"type":"{avro_type.kind}"')
                    self.properties(avro_type.properties, avro_type.kind, 0)
                    put("}")
                else:
                    put(f'"{avro_type.kind}"')
            case Union():
                separator = "["
                for branch in avro_type.branches:
                    put(separator)
                    self.type(branch, namespace)
                    separator = ","
                put("[]" if separator == "[" else "]")
            case Array():
                put('{"type":"array","items":')
                self.type(avro_type.items, namespace)
                self.properties(avro_type.properties, "array", 0)
                put("}")
            case Map():
                put('{"type":"map","values":')
                self.type(avro_type.values, namespace)
                self.properties(avro_type.properties, "map", 0)
                put("}")
            case _:
                self.named(avro_type, namespace)

    def named(self, named: Named, namespace: str) -> None:
        put = self.put
        if id(named) in self.known:
            put(text_of(named.name.relative_to(namespace)))
            return
        self.known.add(id(named))
        put(f'{{"type":"{named.declared_as if isinstance(named, Record) else named.kind}","name":')
        put(text_of(named.name.simple))
        if named.name.namespace != namespace:
            put(f',"namespace":{text_of(named.name.namespace)}')
        if named.doc is not None and (named.doc or not self.normalize):
            put(f',"doc":{text_of(named.doc)}')
        size = 0
        match named:
            case Record():
                self.fields(named)
            case Enum():
                separator = ',"symbols":['
                for symbol in named.symbols:
                    put(f"{separator}{text_of(symbol)}")
                    separator = ","
                put("]" if named.symbols else ',"symbols":[]')
                if named.default is not None:
                    put(f',"default":{text_of(named.default)}')
            case Fixed():
                size = named.size
                put(f',"size":{size}')
        self.properties(named.properties, named.kind, size)
        self.aliases(named.aliases, named.name.namespace)
        put("}")

    def fields(self, record: Record) -> None:
        self.put(',"fields":[')
        for index, field in enumerate(record.fields):
            if index:
                self.put(",")
            self.field(field, record.name.namespace)
        self.put("]")

    def field(self, field: Field, namespace: str) -> None:
        put = self.put
        put(f'{{"name":{text_of(field.name)},"type":')
        self.type(field.type, namespace)
        if field.doc is not None:
            put(f',"doc":{text_of(field.doc)}')
        if field.has_default:
            put(',"default":')
            put(dump(_typed(field.type, field.default) if self.normalize else field.default))
        if field.order != "ascending":
            put(f',"order":"{field.order}"')
        if field.aliases:
            aliases = sorted(field.aliases) if self.normalize else field.aliases
            put(f',"aliases":[{",".join(text_of(alias) for alias in aliases)}]')
        self.properties(field.properties, "", 0)
        put("}")

    def properties(self, properties: Properties, kind: str, size: int) -> None:
        if not properties:
            return
        keys: Iterable[str] = properties
        if self.normalize:
            keys = _sorted_keys(properties, kind, size)
        for key in keys:
            self.put(f",{text_of(key)}:{dump(properties[key], sort_keys=self.normalize)}")

    def aliases(self, aliases: tuple[Name, ...], namespace: str) -> None:
        if aliases:
            names = sorted(aliases, key=lambda alias: alias.full) if self.normalize else aliases
            self.put(f',"aliases":[{",".join(text_of(alias.relative_to(namespace)) for alias in names)}]')


def _sorted_keys(properties: Properties, kind: str, size: int) -> list[str]:
    """A valid logical type and its attributes first, then the other keys by name."""
    leading: list[str] = []
    logical = properties.get("logicalType")
    if logical == "decimal" and not decimal_problem(kind, size, properties):
        leading = ["logicalType", "precision"]
        if properties.get("scale"):
            leading.append("scale")
    elif isinstance(logical, str) and (
        _LOGICAL_BASES.get(logical) == kind
        or (logical == "uuid" and (kind == "string" or (kind == "fixed" and size == 16)))
        or (logical == "duration" and kind == "fixed" and size == 12)
    ):
        leading = ["logicalType"]
    return [*leading, *sorted(key for key in properties if key not in leading)]


def _typed(avro_type: AvroType, value: Any) -> Any:
    """A default in the format of its type: 1 for a double is 1.0."""
    match avro_type:
        case Primitive(kind="float" | "double") if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        case Array() if isinstance(value, list):
            return [_typed(avro_type.items, item) for item in value]
        case Map() if isinstance(value, dict):
            return {key: _typed(avro_type.values, item) for key, item in value.items()}
        case Record() if isinstance(value, dict):
            types = {field.name: field.type for field in avro_type.fields}
            return {key: _typed(types[key], item) if key in types else item for key, item in value.items()}
        case Union():
            for branch in avro_type.branches:
                if fits(branch, value):
                    return _typed(branch, value)
    return value
