"""Embedded formats: how keys and values stand in JSON bodies, and which bytes they become.

binary (base64), json, string: no schema. avro, jsonschema, protobuf: through the registry, by id, version, text or the
subject's latest. A value that does not fit its schema is refused with the place where it does not.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import orjson

from proxy.errors import ConversionFailed, InvalidPayload

Encode = Callable[[object], bytes | None]
"""A JSON value to bytes; raises ProxyError."""


class Format(StrEnum):
    BINARY = "binary"
    JSON = "json"
    STRING = "string"
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        return self in _WITH_SCHEMA


_WITH_SCHEMA = frozenset({Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF})


def encode_binary(value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConversionFailed(f"Binary data is a string of base64, not {type(value).__name__}.")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ConversionFailed(f"The data is not base64: {error}.") from error


def encode_json(value: object) -> bytes | None:
    return orjson.dumps(value)


def encode_string(value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConversionFailed(f"Text data is a string, not {type(value).__name__}.")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidPayload(f"The text is not Unicode: {error}.") from error


SCHEMALESS: dict[Format, Encode] = {
    Format.BINARY: encode_binary,
    Format.JSON: encode_json,
    Format.STRING: encode_string,
}


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """Which schema a payload is written with: exactly one of the first three, or none for the subject's latest."""

    schema_id: int | None = None
    version: int | None = None
    text: str | None = None
    subject: str | None = None
    name_strategy: str | None = None
    """RECORD_NAME or TOPIC_RECORD_NAME: the subject is named after the record that the text declares."""
    topic: str | None = None
