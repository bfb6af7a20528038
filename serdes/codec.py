"""What each schema language offers to the serializers: a writer of bodies and a reader of them."""

from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Poison


@dataclass(frozen=True, slots=True)
class Body:
    """`path` leads to a Protobuf message; it goes before the body, or into the header. Empty in other languages."""

    content: bytes
    path: bytes = b""


class BodyWriter(Protocol):
    """Values of one schema to bodies. Immutable; safe to share between threads."""

    @property
    def record_name(self) -> str | None:
        """The name that the record strategies use."""
        ...

    def write(self, value: object) -> Body:
        """Raises `EncodeError`, and nothing else, for any value."""
        ...


class BodyReader(Protocol):
    """Bodies of one writer's schema to values of one reader's. Immutable; safe to share between threads."""

    def read(self, frame: Frame) -> object | Poison:
        """Raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class WriteOptions:
    ignore_unknown_fields: bool = False
    """Avro and Protobuf: drop what the schema does not know, instead of refusing the value."""
    validate_json: bool = True
    protobuf_message: str | None = None
    """The full name of the message that dictionaries stand for; the first of the file if None."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    tag_unions: bool = False
    """Avro: a value of a union, unless null, as `(branch name, value)`."""
    validate_json: bool = True
    protobuf_as_dict: bool = False
    protobuf_json_names: bool = False
    """With `protobuf_as_dict`: lowerCamelCase names and default values, as Confluent's REST proxy prints messages."""
    protobuf_class: type[Message] | None = None
    """Read into this generated class; one is made from the schema if None."""


JsonValue = Any
"""What `json.loads` returns."""
