"""Marks in a dead-letter topic: records without key and value that say which letters were re-driven.

`STARTED` claims a letter before it is sent, `DONE` follows its acknowledgement. All marks of a letter are in its
partition, and the first `STARTED` in the partition wins: if several runs claim a letter, only that run sends it. A
letter with only `STARTED` is being sent, or its run was interrupted: its outcome is unknown, and it is not sent again.
A letter is therefore re-driven at most once, also by concurrent runs.
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
RUN: Final = PREFIX + "run"
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
    run: str = ""
    """Distinguishes concurrent runs."""


def mark_headers(mark: Mark) -> tuple[Header, ...]:
    fields = {
        PARTITION: mark.partition,
        OFFSET: mark.offset,
        STATE: mark.state,
        BY: mark.by,
        AT: mark.at_ms,
        RUN: mark.run,
    }
    return tuple((name, str(value).encode()) for name, value in fields.items())


def read_mark(headers: Sequence[Header]) -> Mark | None:
    """None for a record that is not a mark, or that has invalid headers."""
    if not headers or headers[0][0] != PARTITION:
        return None
    found = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
    try:
        return Mark(
            int(found[PARTITION]),
            int(found[OFFSET]),
            MarkState(found[STATE]),
            found.get(BY, ""),
            int(found[AT]),
            found.get(RUN, ""),
        )
    except (KeyError, ValueError):
        return None
