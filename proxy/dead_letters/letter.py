"""A stored dead letter, its state, filters, and its JSON form."""

import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from headgate.proxy.dead_letters.hex_dump import fault_position, hex_dump
from headgate.serdes import DeadLetter, Reason, Record

_POSITION: Final = re.compile(r"(\d{1,9}):(\d{1,18})")


class InvalidFilter(ValueError):
    """The filter names an unknown reason or state."""


class LetterState(StrEnum):
    WAITING = "waiting"
    REDRIVEN = "redriven"
    UNKNOWN = "unknown"
    """A run has claimed the letter and did not report its end. It is still running, or it was interrupted."""


@dataclass(frozen=True, slots=True)
class StoredLetter:
    record: Record
    """The record in the dead-letter topic or the row of a dead-letter table."""
    letter: DeadLetter
    state: LetterState

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset in the dead-letter topic. For a table: 0 and the number of the row."""
        return self.record.partition or 0, self.record.offset or 0

    @property
    def position(self) -> str:
        return "{}:{}".format(*self.place)

    @property
    def reason(self) -> str:
        return "-" if self.letter.reason is None else self.letter.reason.name

    @property
    def failed_at_ms(self) -> int | None:
        return self.letter.failed_at_ms if self.letter.failed_at_ms is not None else self.record.timestamp_ms

    @property
    def payload(self) -> bytes | None:
        """The bad part of the record."""
        return self.record.key if self.letter.part == "key" else self.record.value

    def hex_dump(self) -> str | None:
        """The bytes with a caret below the fault."""
        if self.payload is None:
            return None
        return hex_dump(self.payload, fault_position(self.letter, self.payload))

    def document(self, *, with_payload: bool = False) -> dict[str, Any]:
        """The letter as JSON, for the command line and the REST API."""
        letter = self.letter
        partition, offset = self.place
        found: dict[str, Any] = {
            "partition": partition,
            "offset": offset,
            "source": {
                "topic": letter.origin.topic or None,
                "partition": letter.origin.partition,
                "offset": letter.origin.offset,
            },
            "part": letter.part,
            "reason": None if letter.reason is None else letter.reason.name,
            "detail": letter.detail,
            "schema_id": letter.schema_id,
            "application": letter.application,
            "attempt": letter.attempt,
            "failed_at": self.failed_at_ms,
            "state": str(self.state),
            "convention": letter.convention,
        }
        if with_payload:
            payload = self.payload
            found["schema_guid"] = letter.schema_guid
            found["advice"] = None if letter.reason is None else letter.reason.advice
            found["payload_base64"] = None if payload is None else b64encode(payload).decode()
            found["fault_position"] = None if payload is None else fault_position(letter, payload)
            found["hex_dump"] = self.hex_dump()
        return found


@dataclass(frozen=True, slots=True)
class LetterFilter:
    reasons: frozenset[str] = frozenset()
    schema_id: int | None = None
    application: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    state: LetterState | None = None

    def accepts(self, stored: StoredLetter) -> bool:
        at = stored.failed_at_ms
        return (
            (not self.reasons or stored.reason in self.reasons)
            and (self.schema_id is None or stored.letter.schema_id == self.schema_id)
            and (self.application is None or stored.letter.application == self.application)
            and (self.since_ms is None or (at is not None and at >= self.since_ms))
            and (self.until_ms is None or (at is not None and at < self.until_ms))
            and (self.state is None or stored.state is self.state)
        )


@dataclass(frozen=True, slots=True)
class LetterCounts:
    counts: Counter[tuple[str, int | None, str]]
    """By reason, schema and state."""
    is_complete: bool
    """False if the budget ended before the topic."""

    def document(self) -> list[dict[str, Any]]:
        names = ("reason", "schema_id", "state")
        rows = self.counts.most_common()
        return [{**dict(zip(names, key, strict=True)), "letters": number} for key, number in rows]


def reason_names(given: list[str]) -> frozenset[str]:
    """Raises InvalidFilter."""
    names = frozenset(name.upper() for name in given)
    if unknown := sorted(names - set(Reason.__members__)):
        raise InvalidFilter(f"{unknown[0][:40]} is not a reason; use one of {', '.join(Reason.__members__)}")
    return names


def parse_position(text: str) -> tuple[int, int] | None:
    """Partition and offset from `PARTITION:OFFSET`."""
    found = _POSITION.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2]))
