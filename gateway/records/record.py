"""Records of the command line."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to send. The cluster or the producer chooses fields that are None."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
