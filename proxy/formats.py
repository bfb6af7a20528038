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

from headgate.proxy.errors import ConversionFailed, InvalidPayload

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
        raise ConversionFailed(f"Binary data is a string of base64, not {_kind(value)}.")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConversionFailed(f"The data is not base64: {error}.") from error


class ExactFloat(float):
    """A number as it was written, for texts that hold more than a double can."""

    def __new__(cls, text: str) -> "ExactFloat":
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def encode_json(value: object) -> bytes | None:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        pass
    try:
        return orjson.dumps(_with_texts(value, 0))
    except orjson.JSONEncodeError as error:
        raise ConversionFailed(f"The data cannot be written as JSON: {error}.") from error


# orjson's own limit on the way out.
_DEPTH_MAX = 250


def _with_texts(value: object, depth: int) -> object:
    """Numbers that orjson does not know, as the text they stand for."""
    if depth > _DEPTH_MAX:
        raise ConversionFailed(f"The data is nested deeper than {_DEPTH_MAX}.")
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
        raise ConversionFailed(f"Text data is a string, not {_kind(value)}.")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidPayload(f"The text is not Unicode: {error}.") from error


def _kind(value: object) -> str:
    """A JSON value's type in JSON's own words."""
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

    @property
    def is_latest(self) -> bool:
        return self.schema_id is None and self.version is None and self.text is None
