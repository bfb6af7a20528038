"""Converts between plain dictionaries and kio's entities, so that scenarios are plain data.

A request lists only the relevant fields. Other fields get their default or zero. A field that exists only in other
versions is omitted. A field that exists in no version is a typo and fails.
"""

import dataclasses
import datetime
import functools
import io
import types
import typing
import uuid
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from tests.wire.record_batches import parse_batches

Plain = dict[str, Any]

API_KEYS: dict[str, int] = {name: key for key, name in api_key_map.items()}
NO_UUID = uuid.UUID(int=0)


def encode_request(api: str, version: int, body: Plain) -> bytes:
    schema = load_request_schema(API_KEYS[api], version)
    _refuse_unknown(api, body)
    out = io.BytesIO()
    entity_writer(schema)(out, _build(schema, body))
    return out.getvalue()


def decode_response(api: str, version: int, payload: bytes) -> Plain:
    """Decode the response to plain data. Raise if bytes remain after the end."""
    schema = load_response_schema(API_KEYS[api], version)
    entity, size = entity_reader(schema)(payload, 0)
    if size != len(payload):
        raise AssertionError(f"{api} v{version}: {len(payload) - size} bytes after the end of the response")
    plain = to_plain(entity)
    assert isinstance(plain, dict)
    return plain


def request_is_flexible(api: str, version: int) -> bool:
    return bool(load_request_schema(API_KEYS[api], version).__flexible__)


def response_is_flexible(api: str, version: int) -> bool:
    # KIP-511: the ApiVersions response header is always version 0, so that every client can read it.
    return api != "api_versions" and bool(load_response_schema(API_KEYS[api], version).__flexible__)


def encode_entity(name: str, version: int, body: Plain) -> bytes:
    """Encode a `data` entity, for example ConsumerProtocolSubscription, with its version prefix."""
    schema = _data_schema(name, version)
    out = io.BytesIO()
    out.write(version.to_bytes(2, "big"))
    entity_writer(schema)(out, _build(schema, body))
    return out.getvalue()


def _data_schema(name: str, version: int) -> Any:
    from kio.index import load_entity_schema
    from kio.static.constants import EntityType

    return load_entity_schema(name, version, EntityType.data)


def to_plain(value: object) -> Any:
    if isinstance(value, ErrorCode):
        return value.name.upper()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain: Plain = {}
        for field in dataclasses.fields(value):
            item = getattr(value, field.name)
            if field.metadata.get("kafka_type") == "records":
                plain[field.name] = None if item is None else parse_batches(bytes(item))
            else:
                plain[field.name] = to_plain(item)
        return plain
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("latin-1")
    return value


@functools.cache
def _hints(schema: Any) -> dict[str, Any]:
    return typing.get_type_hints(schema)


def _build(schema: Any, body: Plain) -> Any:
    values: Plain = {}
    for field in dataclasses.fields(schema):
        kafka_type = field.metadata.get("kafka_type")
        if field.name in body:
            values[field.name] = _convert(_hints(schema)[field.name], kafka_type, body[field.name])
        elif field.default is dataclasses.MISSING:
            values[field.name] = _zero(_hints(schema)[field.name])
    return schema(**values)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        arms = [arm for arm in typing.get_args(hint) if arm is not type(None)]
        return arms[0], len(arms) < len(typing.get_args(hint))
    return hint, False


def _convert(hint: Any, kafka_type: str | None, value: Any) -> Any:
    hint, _ = _without_none(hint)
    if value is None:
        return None
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return tuple(_convert(inner, kafka_type, item) for item in value)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value)
    if kafka_type in {"timedelta_i32", "timedelta_i64"}:
        return datetime.timedelta(milliseconds=value)
    if kafka_type == "datetime_i64":
        return datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    if kafka_type == "uuid":
        return None if uuid.UUID(value) == NO_UUID else uuid.UUID(value)
    if kafka_type == "error_code":
        return ErrorCode(value)
    if kafka_type == "bytes" and isinstance(value, str):
        return value.encode("latin-1")
    return value


def _zero(hint: Any) -> Any:
    hint, optional = _without_none(hint)
    if optional:
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if dataclasses.is_dataclass(hint):
        return _build(hint, {})
    for kind, zero in ((bool, False), (datetime.timedelta, datetime.timedelta()), (float, 0.0), (int, 0), (str, "")):
        if isinstance(hint, type) and issubclass(hint, kind):
            return zero
    return b""


@functools.cache
def _all_names(api: str) -> frozenset[str]:
    names: set[str] = set()
    for version in schema_name_map[api]:
        _collect(load_request_schema(API_KEYS[api], version), names)
    return frozenset(names)


def _collect(schema: Any, names: set[str]) -> None:
    for field in dataclasses.fields(schema):
        names.add(field.name)
        hint, _ = _without_none(_hints(schema)[field.name])
        if typing.get_origin(hint) is tuple:
            hint = typing.get_args(hint)[0]
        if dataclasses.is_dataclass(hint):
            _collect(hint, names)


def _refuse_unknown(api: str, body: Any) -> None:
    if isinstance(body, dict):
        for name, value in body.items():
            if name not in _all_names(api):
                raise AssertionError(f"{api} has no field {name!r}; it has {sorted(_all_names(api))}")
            _refuse_unknown(api, value)
    elif isinstance(body, (list, tuple)):
        for item in body:
            _refuse_unknown(api, item)
