"""Requests and responses through kio, with one handler for all versions of an API.

kio has a class per message and version. Handlers would otherwise be written once per version, so they speak the newest
shape: a response is a plain mapping of the newest version's fields, and `response_writer` drops what the asked version
lacks and fills what was not given with the protocol's default. Times are milliseconds and error codes are `ErrorCode`.
"""

import datetime
import io
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import DecodeError
from kio.static.protocol import Entity

from headgate.broker.protocol.annotations import shape_of

Answer: TypeAlias = Mapping[str, object]
"""A response in the newest version's fields; nested structures are mappings, arrays are sequences."""

Request: TypeAlias = Any
"""A request of any version. Read a field that old versions lack with `getattr(request, name, default)`."""

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_ZERO_VALUES: Mapping[str, object] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
    "uuid": uuid.UUID(int=0),
    "float64": 0.0,
}


class ApiVersionRange(NamedTuple):
    """The versions of an API that are supported, in the fields of the ApiVersions response."""

    api_key: int
    min_version: int
    max_version: int


class MalformedRequest(Exception):
    """The bytes are not the message that their header names. The connection cannot go on."""


def milliseconds(value: datetime.timedelta | int) -> int:
    return value if isinstance(value, int) else round(value.total_seconds() * 1000)


@cache
def request_reader(api_key: int, version: int) -> Callable[[bytes | memoryview, int], tuple[Request, int]]:
    return entity_reader(load_request_schema(api_key, version))


def read_request(api_key: int, version: int, frame: bytes | memoryview, position: int) -> Request:
    """Parse the body of a request that starts at `position`."""
    try:
        request, _ = request_reader(api_key, version)(frame, position)
    except (DecodeError, ValueError, OverflowError, TypeError, EOFError, IndexError, KeyError) as error:
        raise MalformedRequest(f"{error!r}") from error
    return request


@cache
def response_header_is_flexible(api_key: int, version: int) -> bool:
    """Whether the response header ends with tagged fields. ApiVersions never does (KIP-511)."""
    schema = load_response_schema(api_key, version)
    return bool(schema.__header_schema__.__flexible__)


@cache
def response_writer(api_key: int, version: int) -> Callable[[Answer], bytes]:
    """The function that turns an answer into the body's bytes at `version`."""
    schema = load_response_schema(api_key, version)
    build = entity_builder(schema)
    write = entity_writer(schema)

    def encode(answer: Answer) -> bytes:
        buffer = io.BytesIO()
        write(buffer, build(answer))  # type: ignore[arg-type]  # built from the writer's own schema
        return buffer.getvalue()

    return encode


@cache
def entity_builder(schema: type[Entity]) -> Callable[[Answer], Entity]:
    """The function that builds one of kio's entities from a mapping of the newest version's fields."""
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
        else:
            default = _ZERO_VALUES.get(kafka_type, 0)
        plan.append((field.name, convert, default))

    def build(answer: Answer) -> Entity:
        values = {name: convert(answer[name]) if name in answer else default for name, convert, default in plan}
        return schema(**values)

    return build


def _converter(kafka_type: str) -> Callable[[Any], object]:
    if kafka_type.startswith("timedelta"):
        return lambda value: datetime.timedelta(milliseconds=value) if isinstance(value, int) else value
    if kafka_type.startswith("datetime"):
        return lambda value: EPOCH + datetime.timedelta(milliseconds=value) if isinstance(value, int) else value
    return lambda value: value


def _array_converter(convert: Callable[[Any], object]) -> Callable[[Sequence[Any]], object]:
    return lambda values: tuple(convert(value) for value in values)


def _optional_converter(convert: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: None if value is None else convert(value)
