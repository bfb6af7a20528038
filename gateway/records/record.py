"""A record as the command line, the console and the files between them see it."""

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
    """Why the record cannot be shown, such as a batch that is too large once decompressed."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """One that is to be sent; None for what the cluster or the producer decides."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
