"""Formats of keys and values in responses, and their media types."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from headgate.openapi.media_types import negotiate
from headgate.proxy.errors import FormatMismatch, NotAcceptable


class ReadFormat(StrEnum):
    BINARY = "binary"
    JSON = "json"
    STRING = "string"
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"
    AUTO = "auto"
    """Detected from the payload: a registered schema, else JSON, else text, else base64."""

    @classmethod
    def named(cls, name: str) -> "ReadFormat | None":
        lowered = name.strip().lower()
        return _ALIASES.get(lowered) or cls.__members__.get(lowered.upper())


_ALIASES: Final[Mapping[str, ReadFormat]] = {
    "text": ReadFormat.STRING,
    "json_schema": ReadFormat.JSONSCHEMA,
    "bytes": ReadFormat.BINARY,
}


@dataclass(frozen=True, slots=True)
class Formats:
    key: ReadFormat
    value: ReadFormat
    native_logical: bool = False
    """Whether Avro's logical types have their readable form (`serdes.avro.native_json`)."""


MEDIA_TYPES: Final[Mapping[ReadFormat, str]] = {
    ReadFormat.BINARY: "application/vnd.kafka.binary.v2+json",
    ReadFormat.JSON: "application/vnd.kafka.json.v2+json",
    ReadFormat.STRING: "application/vnd.kafka.text.v2+json",
    ReadFormat.AVRO: "application/vnd.kafka.avro.v2+json",
    ReadFormat.JSONSCHEMA: "application/vnd.kafka.jsonschema.v2+json",
    ReadFormat.PROTOBUF: "application/vnd.kafka.protobuf.v2+json",
    ReadFormat.AUTO: "application/vnd.kafka.v2+json",
}
_EVERY_MEDIA_TYPE: Final = (*MEDIA_TYPES.values(), "application/json")


def check_accept(accept: str, value_format: ReadFormat) -> str:
    """Returns the media type of a response in this format. Raises FormatMismatch for another format.

    Raises NotAcceptable for unknown media types. As in Confluent's REST Proxy, `application/vnd.kafka.v2+json` without
    a format means binary. Wildcards and plain `application/json` accept the format of the consumer.
    """
    own = MEDIA_TYPES[value_format]
    offered: tuple[str, ...] = (own, "application/json")
    if value_format is ReadFormat.BINARY:
        offered = (own, MEDIA_TYPES[ReadFormat.AUTO], "application/json")
    found = negotiate(accept, offered)
    if found is not None:
        return found
    if negotiate(accept, _EVERY_MEDIA_TYPE) is not None:
        raise FormatMismatch(
            f"The requested embedded data format does not match the deserializer for this consumer instance: it reads "
            f"{value_format}, so ask with Accept: {own}."
        )
    raise NotAcceptable
