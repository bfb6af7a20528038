"""Dataclasses and pydantic models as Avro schemas.

    @dataclass
    class Order:
        id: int
        price: Annotated[Decimal, AvroType(decimal(9, 2))]
        note: str | None = None

    Serializer(registry, Order).serialize(Order(1, Decimal("9.99")), topic="orders")
    Deserializer(registry, DeserializerOptions(model=Order)).deserialize(payload)  # an Order

| Python | Avro |
|---|---|
| `bool`, `int`, `float`, `str`, `bytes` | boolean, long, double, string, bytes |
| `datetime`, `date`, `time`, `UUID` | timestamp-micros, date, time-micros, uuid |
| `Decimal` | decimal; needs `AvroType(decimal(precision, scale))`, or pydantic's `max_digits` and `decimal_places` |
| `list[T]`, `dict[str, T]` | array, map |
| `Enum` with texts, `Literal["a", "b"]` | enum |
| `T | None`, `A | B` | union |
| dataclass, pydantic model | record, which may contain itself |
"""

import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from headgate.serdes.errors import EncodeError
from headgate.serdes.schemas import SchemaDefinition, avro_schema

Convert = Callable[[Any], Any]
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_NONE: Final = type(None)
_SCALARS: Final[Mapping[type, Any]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    time: {"type": "long", "logicalType": "time-micros"},
    UUID: {"type": "string", "logicalType": "uuid"},
}
_MISSING: Final = object()


class ModelError(TypeError):
    """A class cannot be an Avro schema. The message names the field."""


@dataclass(frozen=True, slots=True)
class AvroType:
    """The Avro type of an annotated field: `Annotated[int, AvroType("int")]`."""

    schema: Any


def decimal(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


@dataclass(frozen=True, slots=True)
class Model:
    """The schema of a class, and the conversion of its instances."""

    schema: SchemaDefinition
    to_value: Convert
    """An instance → a value of the Avro encoder. Raises EncodeError."""
    from_value: Convert
    """A value of the Avro decoder, with tagged unions → an instance. Raises ValueError."""


@dataclass(slots=True)
class _Kind:
    schema: Any
    python: type
    """Selects the branch of a union."""
    name: str
    """The name of the branch."""
    write: Convert
    read: Convert


def is_model(kind: object) -> TypeGuard[type]:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"))


def model_of(kind: type) -> Model:
    """Raises ModelError."""
    if not is_model(kind):
        raise ModelError(f"{kind!r} is neither a dataclass nor a pydantic model")
    root = _Compiler().record(kind)
    return Model(avro_schema(json.dumps(root.schema)), root.write, root.read)


class _Compiler:
    def __init__(self) -> None:
        self._records: dict[type, _Kind] = {}
        self._names: dict[str, type] = {}

    def record(self, kind: type) -> _Kind:
        """The first use of a record contains its definition, later ones its name."""
        if kind in self._records:
            known = self._records[kind]
            return dataclasses.replace(known, schema=known.name)
        name = self._unique(kind)
        schema: dict[str, Any] = {"type": "record", "name": name, "fields": []}
        fields: list[tuple[str, _Kind]] = []

        def write(instance: Any) -> dict[str, Any]:
            if not isinstance(instance, kind):
                raise EncodeError(f"{type(instance).__name__} is not {kind.__name__}")
            return {field: inner.write(getattr(instance, field)) for field, inner in fields}

        def read(value: Any) -> Any:
            return _build(kind, {field: inner.read(value[field]) for field, inner in fields})

        made = self._records[kind] = _Kind(schema, kind, name, write, read)
        hints = get_type_hints(kind, include_extras=True)
        for field, (default, metadata) in _fields(kind).items():
            where = f"{kind.__name__}.{field}"
            inner = self._kind(hints[field], where, metadata)
            fields.append((field, inner))
            schema["fields"].append({"name": field, "type": _default_first(inner, default), **_default(inner, default)})
        return made

    def _unique(self, kind: type) -> str:
        name = kind.__name__
        if not _NAME.match(name):
            raise ModelError(f"{name} is not a name of Avro")
        if self._names.setdefault(name, kind) is not kind:
            raise ModelError(f"two classes have the name {name}")
        return name

    def _kind(self, hint: Any, where: str, metadata: tuple[Any, ...] = ()) -> _Kind:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            return self._kind(hint, where, (*metadata, *more))
        given = [one.schema for one in metadata if isinstance(one, AvroType)]
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._union(arguments, where, metadata)
        if given:
            return _Kind(given[-1], hint, _branch_name(given[-1]), _same, _same)
        if hint is Decimal:
            return _decimal(where, metadata)
        if hint in _SCALARS:
            return _Kind(_SCALARS[hint], hint, _branch_name(_SCALARS[hint]), _same, _same)
        if hint is None or hint is _NONE:
            return _Kind("null", _NONE, "null", _same, _same)
        if origin is list and len(arguments) == 1:
            item = self._kind(arguments[0], f"{where}[]")
            return _Kind({"type": "array", "items": item.schema}, list, "array", _each(item.write), _each(item.read))
        if origin is dict and len(arguments) == 2 and arguments[0] is str:
            item = self._kind(arguments[1], f"{where}{{}}")
            return _Kind({"type": "map", "values": item.schema}, dict, "map", _values(item.write), _values(item.read))
        if origin is Literal:
            return self._enum(where.rpartition(".")[2].title(), str, {text: text for text in arguments}, where)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._enum(self._unique(hint), hint, {member.value: member for member in hint}, where)
        if is_model(hint):
            return self.record(hint)
        raise ModelError(f"{where}: {hint} has no Avro type; annotate it with AvroType")

    def _enum(self, name: str, kind: type, members: Mapping[Any, Any], where: str) -> _Kind:
        if not all(isinstance(symbol, str) and _NAME.match(symbol) for symbol in members):
            raise ModelError(f"{where}: the values of an enum must be names of Avro, not {list(members)}")
        symbols = {member: symbol for symbol, member in members.items()}
        schema: Any = {"type": "enum", "name": name, "symbols": list(members)}
        if kind is not str:
            known = self._records.get(kind)
            self._records[kind] = _Kind(schema, kind, name, _same, _same)
            schema = schema if known is None else name

        def write(member: Any) -> Any:
            return symbols.get(member, member)

        return _Kind(schema, kind, name, write, members.__getitem__)

    def _union(self, hints: tuple[Any, ...], where: str, metadata: tuple[Any, ...]) -> _Kind:
        branches = [self._kind(hint, where, metadata if hint not in (None, _NONE) else ()) for hint in hints]
        by_name = {branch.name: branch for branch in branches}
        if len(by_name) < len(branches):
            raise ModelError(f"{where}: two branches of the union have the same Avro type")
        branches.sort(key=lambda branch: branch.python is not _NONE)

        def write(value: Any) -> Any:
            if value is None:
                return None
            exact = [branch for branch in branches if type(value) is branch.python]
            for branch in exact or [branch for branch in branches if isinstance(value, branch.python)]:
                return (branch.name, branch.write(value))
            raise EncodeError(f"{type(value).__name__} is no branch of the union {list(by_name)}")

        def read(value: Any) -> Any:
            return None if value is None else by_name[value[0]].read(value[1])

        return _Kind([branch.schema for branch in branches], object, "union", write, read)


def _fields(kind: type) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Default and metadata by field name."""
    found: dict[str, tuple[Any, tuple[Any, ...]]] = {}
    models = getattr(kind, "model_fields", None)
    if models is not None:
        for name, info in models.items():
            default = _MISSING if info.is_required() else info.get_default(call_default_factory=True)
            found[name] = (default, tuple(info.metadata))
        return found
    for field in dataclasses.fields(kind):
        default = field.default
        if default is dataclasses.MISSING:
            default = _MISSING if field.default_factory is dataclasses.MISSING else field.default_factory()
        found[field.name] = (default, ())
    return found


def _build(kind: type, values: dict[str, Any]) -> Any:
    validate = getattr(kind, "model_validate", None)
    return kind(**values) if validate is None else validate(values, by_name=True)


def _default(kind: _Kind, default: Any) -> dict[str, Any]:
    """The `default` of a field, if JSON can express it."""
    if default is _MISSING:
        return {}
    if isinstance(kind.schema, list):
        written = kind.write(default)
        default = written if written is None else written[1]
    elif isinstance(default, Enum):
        default = default.value
    is_simple = default is None or isinstance(default, (bool, int, str)) or default in ([], {})
    is_simple = is_simple or (isinstance(default, float) and math.isfinite(default))
    return {"default": default} if is_simple else {}


def _default_first(kind: _Kind, default: Any) -> Any:
    """The default of a union belongs to its first branch."""
    if not isinstance(kind.schema, list) or default is _MISSING or default is None:
        return kind.schema
    name = kind.write(default)[0]
    return sorted(kind.schema, key=lambda schema: _branch_name(schema) != name)


def _decimal(where: str, metadata: tuple[Any, ...]) -> _Kind:
    digits = [one.max_digits for one in metadata if getattr(one, "max_digits", None) is not None]
    places = [one.decimal_places for one in metadata if getattr(one, "decimal_places", None) is not None]
    if not digits:
        raise ModelError(f"{where}: a Decimal needs its size: Annotated[Decimal, AvroType(decimal(9, 2))]")
    return _Kind(decimal(digits[-1], places[-1] if places else 0), Decimal, "bytes", _same, _same)


def _branch_name(schema: Any) -> str:
    if isinstance(schema, dict):
        return str(schema.get("name") or schema["type"])
    return str(schema)


def _same(value: Any) -> Any:
    return value


def _each(convert: Convert) -> Convert:
    return lambda items: [convert(item) for item in items]


def _values(convert: Convert) -> Convert:
    return lambda items: {key: convert(item) for key, item in items.items()}
