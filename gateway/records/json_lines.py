"""Records as JSON lines, lossless in both directions.

- UTF-8 bytes are strings in `key` and `value`. Other bytes are base64 in `key_base64` and `value_base64`.
- null and "" are different.
- Headers are a list of objects with `name` and `value` (or `value_base64`), in order, with duplicates.
- A decoded payload is a JSON value in `key` or `value`, next to `key_schema_id` or `value_schema_id`.
- A poison record has its payload in base64, and the reason in `poison`.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import orjson

from headgate.gateway.records.record import NewRecord, Record, Text

_FIELDS = frozenset(
    {"key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp"}
    | {"key_schema_id", "value_schema_id", "key_schema_header", "value_schema_header"}
    # Accepted and ignored: the position of the record that was read, and why it was not decoded.
    | {"topic", "offset", "timestamp_type", "poison"}
)
timestamp_ms_max = 2**63 - 1
partition_max = 2**31 - 1
schema_id_max = 2**31 - 1


class BadRecord(ValueError):
    """The line is not a valid record. The message names the field."""


def document_of(record: Record, *, always_base64: bool = False) -> dict[str, object]:
    always_base64 = always_base64 or record.poison is not None
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        **_payload("key", record.key, record.key_text, always_base64),
        **_payload("value", record.value, record.value_text, always_base64),
        "headers": [{"name": name, **_field("value", value, always_base64)} for name, value in record.headers],
        **_poison(record),
    }


def record_of(line: str | bytes, encoded: frozenset[str] = frozenset()) -> NewRecord:
    """`encoded` names the payloads (`key`, `value`) that a schema encodes later. Raises BadRecord."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadRecord('not a JSON object like {"key": "a", "value": "b"}')
    unknown = sorted(set(document) - _FIELDS)
    if unknown:
        raise BadRecord(f"{unknown[0]!r} is not a field of a record; use {', '.join(sorted(_FIELDS))}")
    return NewRecord(
        _bytes_of(document, "key", as_json="key" in encoded),
        _bytes_of(document, "value", as_json="value" in encoded),
        _headers(document.get("headers")),
        _number(document, "partition", partition_max),
        _number(document, "timestamp", timestamp_ms_max),
        _schema_id(document, "key"),
        _schema_id(document, "value"),
    )


def _payload(name: str, payload: bytes | None, text: Text | None, always_base64: bool) -> dict[str, object]:
    if text is None:
        return dict(_field(name, payload, always_base64))
    if not text.is_json:
        return {name: text.content.decode(errors="replace")}
    schema = {f"{name}_schema_{'header' if text.in_header else 'id'}": text.schema} if text.schema is not None else {}
    return {name: orjson.Fragment(text.content), **schema}


def _poison(record: Record) -> dict[str, object]:
    if record.poison is None:
        return {}
    poison = record.poison
    schema = poison.schema_id if poison.schema_id is not None else poison.schema_guid
    return {
        "poison": {
            "part": record.poison_part,
            "reason": poison.reason.name,
            "detail": poison.detail,
            **({} if schema is None else {"schema": schema}),
        }
    }


def _schema_id(document: Mapping[str, Any], name: str) -> int | None:
    if document.get(f"{name}_schema_header") is not None:
        raise BadRecord(f"the schema id of the {name} is in a header; copy such records with consume --raw --json")
    number = _number(document, f"{name}_schema_id", schema_id_max)
    if number is not None and document.get(f"{name}_base64") is not None:
        raise BadRecord(f"both {name}_base64 and {name}_schema_id are given")
    return number


def _field(name: str, content: bytes | None, always_base64: bool) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    if not always_base64:
        try:
            return {name: content.decode("utf-8")}
        except UnicodeDecodeError:
            pass
    return {f"{name}_base64": base64.b64encode(content).decode("ascii")}


def _bytes_of(document: Mapping[str, Any], name: str, *, as_json: bool = False) -> bytes | None:
    encoded = document.get(f"{name}_base64")
    if encoded is not None:
        if document.get(name) is not None:
            raise BadRecord(f"both {name} and {name}_base64 are given")
        if not isinstance(encoded, str):
            raise BadRecord(f"{name}_base64 is not a string")
        return decoded(encoded, f"{name}_base64")
    content = document.get(name)
    if document.get(f"{name}_schema_id") is not None:
        return json.dumps(content).encode()
    if content is None:
        return None
    if isinstance(content, str) and not as_json:
        try:
            return content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadRecord(f"{name} contains an unpaired surrogate, which UTF-8 cannot encode") from error
    # A number or an object is sent as its JSON text.
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")


def decoded(text: str | bytes, name: str) -> bytes:
    """Decode base64. Raises BadRecord with the name of the field."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRecord(f"{name} is not base64: {error}") from error


def _headers(headers: object) -> tuple[tuple[str, bytes | None], ...]:
    if headers is None:
        return ()
    if isinstance(headers, dict):
        return tuple((name, _bytes_of({"value": value}, "value")) for name, value in headers.items())
    if not isinstance(headers, list):
        raise BadRecord('headers is neither a list like [{"name": "a", "value": "b"}] nor an object')
    found = []
    for at, header in enumerate(headers):
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise BadRecord(f"headers[{at}] has no name")
        found.append((header["name"], _bytes_of(header, "value")))
    return tuple(found)


def _number(document: Mapping[str, Any], name: str, largest: int) -> int | None:
    number = document.get(name)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= largest:
        raise BadRecord(f"{name} is not a whole number from 0 to {largest}")
    return number
