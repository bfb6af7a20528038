"""Marks in a dead-letter topic: records without key and value that say which letters were re-driven.

`STARTED` is written before a letter is sent, `DONE` after its acknowledgement. A letter with only `STARTED` was
interrupted: its outcome is unknown. A letter is therefore re-driven at most once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PREFIX: Final = "headgate.redrive_mark."
PARTITION: Final = PREFIX + "partition"
OFFSET: Final = PREFIX + "offset"
STATE: Final = PREFIX + "state"
BY: Final = PREFIX + "by"
AT: Final = PREFIX + "at"

Header = tuple[str, bytes | None]


class MarkState(StrEnum):
    STARTED = "started"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Mark:
    partition: int
    offset: int
    """The position of the letter in the dead-letter topic."""
    state: MarkState
    by: str
    at_ms: int


def mark_headers(mark: Mark) -> tuple[Header, ...]:
    fields = {PARTITION: mark.partition, OFFSET: mark.offset, STATE: mark.state, BY: mark.by, AT: mark.at_ms}
    return tuple((name, str(value).encode()) for name, value in fields.items())


def read_mark(headers: Sequence[Header]) -> Mark | None:
    """None for a record that is not a mark, or that has invalid headers."""
    if not headers or headers[0][0] != PARTITION:
        return None
    found = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
    try:
        return Mark(
            int(found[PARTITION]), int(found[OFFSET]), MarkState(found[STATE]), found.get(BY, ""), int(found[AT])
        )
    except (KeyError, ValueError):
        return None
