"""kio entities from mappings, for one piece of code that serves all versions of an API.

kio has one class per message and version. A message is written here as a mapping with the field names of the newest
version. `entity_builder` ignores fields that the requested version lacks, and fills missing fields with the protocol's
default. Times are milliseconds, error codes are `ErrorCode`.
"""

import dataclasses
import datetime
import io
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.protocol import Entity

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_ZERO_VALUES: Final[Mapping[str, object]] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "datetime_i64": _EPOCH,
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
    "uuid": uuid.UUID(int=0),
    "float64": 0.0,
}


class FieldShape(NamedTuple):
    nested: type[Entity] | None
    is_array: bool
    is_optional: bool


def shape_of(hint: object) -> FieldShape:
    """The shape of a field, from its annotation in kio."""
    is_optional = False
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        is_optional = len(members) < len(typing.get_args(hint))
        hint = members[0]
    is_array = typing.get_origin(hint) is tuple
    if is_array:
        hint = typing.get_args(hint)[0]
    nested = hint if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__") else None
    return FieldShape(nested, is_array, is_optional)


@cache
def entity_encoder(schema: type[Entity]) -> Callable[[Mapping[str, object]], bytes]:
    """The function that encodes a mapping as one message, without header."""
    build = entity_builder(schema)
    write = entity_writer(schema)

    def encode(values: Mapping[str, object]) -> bytes:
        buffer = io.BytesIO()
        write(buffer, build(values))
        return buffer.getvalue()

    return encode


@cache
def entity_builder(schema: type[Entity]) -> Callable[[Mapping[str, object]], Entity]:
    """The function that builds an entity from a mapping. Nested structures are mappings, arrays are sequences."""
    hints = typing.get_type_hints(schema)
    plan: list[tuple[str, Callable[[Any], object], object]] = []
    for field in fields(schema):
        nested, is_array, is_optional = shape_of(hints[field.name])
        kafka_type = str(field.metadata.get("kafka_type", ""))
        convert = entity_builder(nested) if nested is not None else _converter(kafka_type)
        if is_array:
            convert = _array_converter(convert)
        if is_optional:
            convert = _optional_converter(convert)
        plan.append((field.name, convert, _default(field, hints[field.name])))

    def build(values: Mapping[str, object]) -> Entity:
        return schema(**{name: convert(values[name]) if name in values else default for name, convert, default in plan})

    return build


def with_fields_of(schema: type[Entity], versions: Sequence[type[Entity]]) -> type[Entity]:
    """A subclass of `schema` that has the fields of all `versions` of the same message. `versions` is newest first.

    A field that `schema` lacks is a class attribute with the default value of the newest version that has the field.
    Therefore one piece of code can read messages of any version, and missing fields cost nothing per message.
    """
    hints = typing.get_type_hints(schema)
    hints_by_version = [(version, typing.get_type_hints(version)) for version in versions]
    missing: dict[str, object] = {}
    for version, version_hints in hints_by_version:
        for field in fields(version):
            if field.name not in hints and field.name not in missing:
                missing[field.name] = _default(field, version_hints[field.name])
    replaced: list[tuple[str, Any, Any]] = []
    for field in fields(schema):
        nested, is_array, is_optional = shape_of(hints[field.name])
        if nested is None:
            continue
        nested_versions = [shape_of(each[field.name]).nested for _, each in hints_by_version if field.name in each]
        extended: Any = with_fields_of(nested, [each for each in nested_versions if each is not None])
        if extended is not nested:
            hint = tuple[extended, ...] if is_array else extended
            spec = dataclasses.field(default=field.default, metadata=field.metadata)
            replaced.append((field.name, hint | None if is_optional else hint, spec))
    if not missing and not replaced:
        return schema
    return dataclasses.make_dataclass(
        schema.__name__, replaced, bases=(schema,), namespace=missing, frozen=True, slots=True, kw_only=True
    )


def _default(field: dataclasses.Field[Any], hint: object) -> object:
    """The value of a field that a message lacks."""
    nested, is_array, is_optional = shape_of(hint)
    if field.default is not dataclasses.MISSING:
        return field.default
    if is_array:
        return ()
    if is_optional:
        return None
    if nested is not None:
        return entity_builder(nested)({})
    return _ZERO_VALUES.get(str(field.metadata.get("kafka_type", "")), 0)


def _converter(kafka_type: str) -> Callable[[Any], object]:
    if kafka_type.startswith("timedelta"):
        return lambda value: datetime.timedelta(milliseconds=value) if isinstance(value, int) else value
    if kafka_type.startswith("datetime"):
        return lambda value: _EPOCH + datetime.timedelta(milliseconds=value) if isinstance(value, int) else value
    return lambda value: value


def _array_converter(convert: Callable[[Any], object]) -> Callable[[Sequence[Any]], object]:
    return lambda values: tuple(convert(value) for value in values)


def _optional_converter(convert: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: None if value is None else convert(value)
