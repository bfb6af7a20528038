"""kio entities from mappings, for one piece of code that serves all versions of an API.

kio has one class per message and version. A message is written here as a mapping with the field names of the newest
version. `entity_builder` ignores fields that the requested version lacks, and fills missing fields with the protocol's
default. Times are milliseconds, error codes are `ErrorCode`.
"""

import datetime
import io
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
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
        default: object
        if field.default is not MISSING:
            default = field.default
        elif is_array:
            default = ()
        elif is_optional:
            default = None
        elif nested is not None:
            default = entity_builder(nested)({})
        else:
            default = _ZERO_VALUES.get(kafka_type, 0)
        plan.append((field.name, convert, default))

    def build(values: Mapping[str, object]) -> Entity:
        return schema(**{name: convert(values[name]) if name in values else default for name, convert, default in plan})

    return build


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
