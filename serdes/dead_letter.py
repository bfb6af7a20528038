"""Dead letters: unreadable records, stored with the reason, and re-driven when the cause is fixed.

A dead letter has the unchanged key and value of the record. The headers of Headgate, all UTF-8 texts, precede its own
headers (table in `docs/serdes.md`). This module contains pure functions on records; callers send them.
`serdes.foreign_dead_letter` reads dead letters of Kafka Connect and Spring.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.serdes.foreign_dead_letter import Foreign, header_number, header_text, read_connect, read_spring
from headgate.serdes.outcome import Poison, Reason

TOPIC_SUFFIX: Final = ".dead"
"""The default name of a dead-letter topic is the name of the topic and this suffix."""
KNOWN_TOPIC_SUFFIXES: Final = (TOPIC_SUFFIX, "-dead-letters", "-dlt", ".DLT")
"""Also earlier names, and those of Spring. Topics with these names are listed."""
PREFIX: Final = "headgate.dead_letter."
REDRIVE_PREFIX: Final = "headgate.redrive."

TOPIC: Final = PREFIX + "topic"
PARTITION: Final = PREFIX + "partition"
OFFSET: Final = PREFIX + "offset"
TIMESTAMP: Final = PREFIX + "timestamp"
REASON: Final = PREFIX + "reason"
DETAIL: Final = PREFIX + "detail"
PART: Final = PREFIX + "part"
SCHEMA_ID: Final = PREFIX + "schema_id"
SCHEMA_GUID: Final = PREFIX + "schema_guid"
APPLICATION: Final = PREFIX + "application"
ATTEMPT: Final = PREFIX + "attempt"
FAILED_AT: Final = PREFIX + "failed_at"

REDRIVE_ATTEMPT: Final = REDRIVE_PREFIX + "attempt"
REDRIVE_AUDIT: Final = REDRIVE_PREFIX + "audit"

DETAIL_CHARS_MAX: Final = 2000
"""The detail can quote the payload, and headers count towards the broker's limit for a record."""

TRUNCATED: Final = "truncated: the record had "
"""The detail of a dead letter with an incomplete value starts with this text and the original size. A dead letter is
larger than its record, so its value may have to be truncated."""

AUDIT_ENTRIES_MAX: Final = 20
"""Entries in the audit header. The oldest entries are removed first."""

ATTEMPTS_MAX: Final = 5
"""After this number of failures, a record is not re-driven, unless the caller raises the limit. This prevents loops."""

Header = tuple[str, bytes | None]


class RedriveRefused(ValueError):
    """The record cannot be re-driven: it failed too often, is incomplete, or its source topic is unknown."""


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a Kafka record that dead letters need."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The content of the headers of a dead letter. None if a header is absent."""

    origin: Record
    """The original record with its own headers. The topic is "" if unknown."""
    reason: Reason | None
    detail: str
    part: str
    schema_id: int | None
    schema_guid: str | None
    application: str | None
    attempt: int
    failed_at_ms: int | None
    convention: str
    """`headgate`, `connect`, `spring`, or `none` for a record without known headers."""

    @property
    def is_truncated(self) -> bool:
        return self.detail.startswith(TRUNCATED)


def to_dead_letter(
    record: Record, poison: Poison, *, dead_letter_topic: str, application: str, now_ms: int, is_key: bool = False
) -> Record:
    """Create the record for the dead-letter topic. A re-driven record that fails again has a higher attempt count."""
    attempt = max(header_number(_first(record.headers, REDRIVE_ATTEMPT)) or 0, 0)
    facts: dict[str, str | int | None] = {
        TOPIC: record.topic,
        PARTITION: record.partition,
        OFFSET: record.offset,
        TIMESTAMP: record.timestamp_ms,
        REASON: poison.reason.name,
        DETAIL: poison.detail[:DETAIL_CHARS_MAX],
        PART: "key" if is_key else "value",
        SCHEMA_ID: poison.schema_id,
        SCHEMA_GUID: None if poison.schema_guid is None else str(poison.schema_guid),
        APPLICATION: application,
        ATTEMPT: attempt + 1,
        FAILED_AT: now_ms,
    }
    ours = tuple(
        (name, str(fact).encode("utf-8", "backslashreplace")) for name, fact in facts.items() if fact is not None
    )
    kept = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    return Record(dead_letter_topic, record.key, record.value, ours + kept, timestamp_ms=record.timestamp_ms)


def read_dead_letter(record: Record) -> DeadLetter:
    """Read the headers of a dead letter. Never fails: invalid headers count as absent."""
    headers = record.headers
    if _first(headers, TOPIC) is not None or _first(headers, REASON) is not None:
        return _read_own(record)
    for convention, read in (("connect", read_connect), ("spring", read_spring)):
        foreign = read(headers)
        if foreign is not None:
            return _from_foreign(record, convention, foreign)
    return _from_foreign(record, "none", Foreign())


def redrive(
    dead_letter: Record, *, by: str, now_ms: int, attempts_max: int = ATTEMPTS_MAX, value: bytes | None = None
) -> Record:
    """Create the record for the source topic, with its own bytes and headers, the attempt count and an audit entry.

    `value` replaces a repaired payload. Raises `RedriveRefused`.
    """
    letter = read_dead_letter(dead_letter)
    if not letter.origin.topic:
        raise RedriveRefused("the headers do not contain the source topic")
    if letter.attempt >= attempts_max:
        raise RedriveRefused(f"the record failed {letter.attempt} times; the limit is {attempts_max}")
    if letter.origin.topic == dead_letter.topic:
        raise RedriveRefused("the source topic is the dead-letter topic itself")
    if value is None and letter.is_truncated:
        raise RedriveRefused(f"the dead letter does not contain the complete value ({letter.detail[:60]})")
    entry = {
        "by": by,
        "at": now_ms,
        "from": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "reason": None if letter.reason is None else letter.reason.name,
        "repaired": value is not None,
    }
    audit = [*_audit(dead_letter.headers), entry][-AUDIT_ENTRIES_MAX:]
    headers = (
        *(header for header in letter.origin.headers if not header[0].startswith(REDRIVE_PREFIX)),
        (REDRIVE_ATTEMPT, str(letter.attempt).encode()),
        (REDRIVE_AUDIT, json.dumps(audit, separators=(",", ":")).encode()),
    )
    origin = letter.origin
    return Record(
        origin.topic,
        dead_letter.key,
        dead_letter.value if value is None else value,
        headers,
        partition=origin.partition,
        timestamp_ms=origin.timestamp_ms,
    )


def _read_own(record: Record) -> DeadLetter:
    headers = record.headers
    name = header_text(_first(headers, REASON)) or ""
    return DeadLetter(
        origin=Record(
            header_text(_first(headers, TOPIC)) or "",
            record.key,
            record.value,
            tuple(header for header in headers if not header[0].startswith(PREFIX)),
            header_number(_first(headers, PARTITION)),
            header_number(_first(headers, OFFSET)),
            header_number(_first(headers, TIMESTAMP)),
        ),
        reason=Reason.__members__.get(name),
        detail=header_text(_first(headers, DETAIL)) or "",
        part=header_text(_first(headers, PART)) or "value",
        schema_id=header_number(_first(headers, SCHEMA_ID)),
        schema_guid=header_text(_first(headers, SCHEMA_GUID)),
        application=header_text(_first(headers, APPLICATION)),
        attempt=max(header_number(_first(headers, ATTEMPT)) or 1, 1),
        failed_at_ms=header_number(_first(headers, FAILED_AT)),
        convention="headgate",
    )


def _from_foreign(record: Record, convention: str, foreign: Foreign) -> DeadLetter:
    attempts = header_number(_first(record.headers, REDRIVE_ATTEMPT)) or 0
    return DeadLetter(
        origin=Record(
            foreign.topic or "",
            record.key,
            record.value,
            tuple(header for header in record.headers if not foreign.owns(header[0])),
            foreign.partition,
            foreign.offset,
            foreign.timestamp_ms,
        ),
        reason=foreign.reason,
        detail=foreign.detail[:DETAIL_CHARS_MAX],
        part=foreign.part,
        schema_id=None,
        schema_guid=None,
        application=foreign.application,
        attempt=max(foreign.attempt, attempts + 1),
        failed_at_ms=None,
        convention=convention,
    )


def _audit(headers: Sequence[Header]) -> list[object]:
    try:
        entries = json.loads(_first(headers, REDRIVE_AUDIT) or b"[]")
    except (ValueError, RecursionError):
        return []
    return entries if isinstance(entries, list) else []


def _first(headers: Sequence[Header], name: str) -> bytes | None:
    return next((value for key, value in headers if key == name), None)
