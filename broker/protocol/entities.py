"""Requests and responses of the broker's APIs. One handler serves all versions of an API; see `wire.entities`."""

import datetime
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from headgate.wire.entities import entity_encoder

Answer: TypeAlias = Mapping[str, object]
"""A response with the field names of the newest version. Nested structures are mappings, arrays are sequences."""

Request: TypeAlias = Any
"""A request of any version. Read a field that old versions lack with `getattr(request, name, default)`."""


class ApiVersionRange(NamedTuple):
    """The versions of an API that are supported, in the fields of the ApiVersions response."""

    api_key: int
    min_version: int
    max_version: int


class MalformedRequest(Exception):
    """The bytes do not match the API key and version in the request header. The broker closes the connection."""


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
    """The function that encodes the body of a response at `version`."""
    return entity_encoder(load_response_schema(api_key, version))
