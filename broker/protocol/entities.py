"""Requests and responses of the broker's APIs. One handler serves all versions of an API; see `wire.entities`."""

import datetime
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader
from kio.serial.errors import DecodeError
from kio.static.protocol import Entity

from headgate.broker.protocol.outcomes import Answer
from headgate.wire.entities import entity_encoder, with_fields_of


class ApiVersionRange(NamedTuple):
    """The supported versions of an API, with the field names of the ApiVersions response."""

    api_key: int
    min_version: int
    max_version: int


class MalformedRequest(Exception):
    """The bytes do not match the API key and version in the request header. The broker closes the connection."""


def milliseconds(value: datetime.timedelta | int) -> int:
    return value if isinstance(value, int) else round(value.total_seconds() * 1000)


@cache
def request_type(api_key: int, version: int) -> type[Entity]:
    """Return kio's class of a request, extended with the fields of all other versions and their default values."""
    versions = sorted(schema_name_map[api_key_map[api_key]], reverse=True)
    newest_first = [load_request_schema(api_key, each) for each in versions]
    return with_fields_of(load_request_schema(api_key, version), newest_first)


@cache
def _request_reader(api_key: int, version: int) -> Callable[[bytes | memoryview, int], tuple[Any, int]]:
    return entity_reader(request_type(api_key, version))


def read_request(api_key: int, version: int, frame: bytes | memoryview, position: int) -> Any:
    """Parse the body of a request that starts at `position`. `request_shapes` declares the fields of each request."""
    try:
        request, _ = _request_reader(api_key, version)(frame, position)
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
    """Return the function that encodes a response body at `version`."""
    return entity_encoder(load_response_schema(api_key, version))
