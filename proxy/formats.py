"""Formats of keys and values in JSON request bodies.

| format | encoding |
|---|---|
| binary (base64), json, string | without a schema, in this module |
| avro, jsonschema, protobuf | with a registered schema, in `proxy.schemas` |
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

from headgate.proxy.errors import ConversionFailed, InvalidPayload

Encode = Callable[[object], bytes | None]
"""Encodes a JSON value. Raises ProxyError."""


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
        raise ConversionFailed(f"Binary data must be a base64 string, not {_kind(value)}.")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConversionFailed(f"The data is not base64: {error}.") from error


class ExactFloat(float):
    """A number with its original text, which may have more digits than a double."""

    def __new__(cls, text: str) -> "ExactFloat":
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def encode_json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        pass
    try:
        return orjson.dumps(_with_texts(value, 0))
    except orjson.JSONEncodeError as error:
        raise ConversionFailed(f"The data cannot be written as JSON: {error}.") from error


_DEPTH_MAX: Final = 250
"""orjson encodes at most 254 levels."""


def _with_texts(value: object, depth: int) -> object:
    """Replaces numbers that orjson cannot encode with their text."""
    if depth > _DEPTH_MAX:
        raise ConversionFailed(f"The data has more than {_DEPTH_MAX} nested levels.")
    if isinstance(value, dict):
        return {name: _with_texts(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(inner, depth + 1) for inner in value]
    if isinstance(value, ExactFloat):
        return orjson.Fragment(value.text)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return orjson.Fragment(str(value))
    return value


def encode_string(value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConversionFailed(f"Text data must be a string, not {_kind(value)}.")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidPayload(f"The text is not valid Unicode: {error}.") from error


def _kind(value: object) -> str:
    """The JSON type of a value."""
    kinds = {bool: "a boolean", dict: "an object", list: "an array"}
    return kinds.get(type(value), "a number")


SCHEMALESS: dict[Format, Encode] = {
    Format.BINARY: encode_binary,
    Format.JSON: encode_json,
    Format.STRING: encode_string,
}


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """The schema of a payload: its id, a version of `subject`, its text, or (with none of these) the latest version."""

    schema_id: int | None
    version: int | None
    text: str | None
    subject: str
    name_strategy: str | None = None
    """RECORD_NAME or TOPIC_RECORD_NAME: the record name of the schema determines the subject."""
    topic: str = ""
    native_logical: bool = False
    """Whether Avro's logical types have their readable form (`serdes.avro.native_json`)."""

    @property
    def is_latest(self) -> bool:
        return self.schema_id is None and self.version is None and self.text is None
