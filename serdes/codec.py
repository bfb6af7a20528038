"""The interface of a schema language: a writer and a reader of bodies."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.serdes.avro.column_size import DEFAULT_LIMITS, ColumnLimits
from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Poison

if TYPE_CHECKING:
    from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class Body:
    """`path` is the path of a Protobuf message.

    It precedes the body or is part of the header. Empty for other languages.
    """

    content: bytes
    path: bytes = b""


class BodyWriter(Protocol):
    """Encodes values of one schema. Immutable, so that threads can share it."""

    @property
    def record_name(self) -> str | None:
        """The name for the record name strategies."""
        ...

    def write(self, value: object) -> Body:
        """Encode a value. Raises `EncodeError` and no other error."""
        ...


class BodyReader(Protocol):
    """Decodes bodies of one writer schema to values of one reader schema. Immutable, so that threads can share it."""

    def read(self, frame: Frame) -> object | Poison:
        """Decode a body. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class WriteOptions:
    ignore_unknown_fields: bool = False
    """Avro and Protobuf: ignore unknown fields instead of raising an error."""
    validate_json: bool = True
    protobuf_message: str | None = None
    """The full name of the message for dictionaries. None means the first message of the file."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    tag_unions: bool = False
    """Avro: return a non-null union value as `(branch name, value)`."""
    columns: ColumnLimits = DEFAULT_LIMITS
    """Avro: reject values that are too large as columns, as the columnar decoder does."""
    validate_json: bool = True
    protobuf_as_dict: bool = False
    protobuf_json_names: bool = False
    """With `protobuf_as_dict`: lowerCamelCase names and default values, like Confluent's REST proxy."""
    protobuf_class: "type[Message] | None" = None
    """The generated class of the result. If None, a class is created from the schema."""


JsonValue = Any
"""The types that `json.loads` returns."""
