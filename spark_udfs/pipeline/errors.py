"""What is wrong with a pipeline's file: each mistake with its place, what was found, what is allowed, a near miss.

Mistakes are gathered, not raised one by one: a person who has five of them wants to see five.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

SHOWN_CHARS_MAX = 80
"""A value is quoted as far as it helps to find it."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing to put right. `path` is the key as the file has it: `sinks.lake.type`."""

    path: str
    line: int | None
    message: str

    def text(self, file: str) -> str:
        where = file if self.line is None else f"{file}:{self.line}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class PipelineMistakes(ValueError):
    """The pipeline cannot be understood. Holds every mistake that was found."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes, key=lambda each: (each.line or 0, each.path)))
        super().__init__("\n".join(each.text(file) for each in self.mistakes))


class PipelineError(Exception):
    """The pipeline is well written and cannot run, or could not go on: what, why, and what to try."""

    def __init__(self, what: str, *, why: str = "", advice: str = "", unreachable: bool = False) -> None:
        super().__init__(". ".join(part for part in (what, why, advice) if part))
        self.what = what
        self.why = why
        self.advice = advice
        self.unreachable = unreachable
        """A server did not answer: trying again later may do."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; do you mean topic?`, or nothing where nothing is near."""
    near = get_close_matches(name.lower(), {each.lower(): each for each in known}, 1)
    if not near:
        return ""
    return f"; do you mean {next(each for each in known if each.lower() == near[0])}?"


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 1] + "…"
