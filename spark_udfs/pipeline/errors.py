"""Errors of pipelines: mistakes in the file, each with its line, and failures of a run.

A check collects all mistakes of a file and raises them together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

SHOWN_CHARS_MAX = 80
"""Length of a quoted value in a message."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in the file. `path` is the dotted key: `sinks.lake.type`."""

    path: str
    line: int | None
    message: str

    def text(self, file: str) -> str:
        where = file if self.line is None else f"{file}:{self.line}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class PipelineMistakes(ValueError):
    """The pipeline file is invalid. Contains every mistake."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes, key=lambda each: (each.line or 0, each.path)))
        super().__init__("\n".join(each.text(file) for each in self.mistakes))


class PipelineError(Exception):
    """A valid pipeline cannot start or continue: what failed, why, and advice."""

    def __init__(self, what: str, *, why: str = "", advice: str = "", unreachable: bool = False) -> None:
        super().__init__(". ".join(part for part in (what, why, advice) if part))
        self.what = what
        self.why = why
        self.advice = advice
        self.unreachable = unreachable
        """A server did not respond. A retry may succeed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean topic?`, or an empty string if no known name is similar."""
    by_lower_case = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower_case, 1)
    return f"; did you mean {by_lower_case[near[0]]}?" if near else ""


def shown(value: object) -> str:
    """The value for a message, truncated."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 1] + "…"
