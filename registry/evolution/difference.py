"""One difference between two schemas, before its effect on compatibility is known."""

from dataclasses import dataclass
from typing import Final

# Also limits the work for schemas whose references multiply their paths.
DIFFERENCES_MAX: Final = 1000
TEXT_CHARS_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str
    """For example "field added"."""
    path: str
    """The position, for people."""
    old: str = ""
    new: str = ""
    backward_path: str | None = None
    """The position in the checker's findings if the new schema reads old data. None: the difference breaks nothing."""
    forward_path: str | None = None
    """The same if the old schema reads new data."""


def shortened(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[: TEXT_CHARS_MAX - 1]}…"
