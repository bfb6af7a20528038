"""Records of the command line."""

from dataclasses import dataclass

from headgate.serdes.outcome import Poison


@dataclass(frozen=True, slots=True)
class Text:
    """A payload as text, and the schema that decoded it."""

    content: bytes
    is_json: bool = False
    schema: int | str | None = None
    """The id or guid of the schema. None if the payload has no schema."""
    in_header: bool = False
    """True if a header of the record contains the schema id."""


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    unreadable: str | None = None
    """The reason why the record cannot be read, such as a decompressed batch above the limit."""
    key_text: Text | None = None
    value_text: Text | None = None
    """The decoded payload. If None, the output contains the payload itself."""
    poison: Poison | None = None
    poison_part: str = "value"
    """`key` or `value`: the payload that is poison."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to send. The cluster or the producer chooses fields that are None."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    """If set, the payload is JSON text. It must be encoded with this schema."""
