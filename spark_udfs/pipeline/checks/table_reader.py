"""Typed access to one table of a pipeline file. Records each mistake and returns a default in its place.

Checks read the keys they know. `finish` reports all other keys.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from headgate.spark_udfs.pipeline.document import DEPTH_MAX, Document, Path_
from headgate.spark_udfs.pipeline.errors import Mistake, did_you_mean, shown

Choice = TypeVar("Choice", bound=StrEnum)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
"""A step name is the name of a SQL view."""
_DURATION = re.compile(r"(?P<count>\d{1,9}(?:\.\d{1,6})?)\s*(?P<unit>[A-Za-z]+)")
_UNITS = {
    "ms": ("milliseconds", 0.001),
    "millisecond": ("milliseconds", 0.001),
    "s": ("seconds", 1.0),
    "second": ("seconds", 1.0),
    "m": ("minutes", 60.0),
    "min": ("minutes", 60.0),
    "minute": ("minutes", 60.0),
    "h": ("hours", 3600.0),
    "hour": ("hours", 3600.0),
    "d": ("days", 86400.0),
    "day": ("days", 86400.0),
    "week": ("weeks", 604800.0),
}


class TableReader:
    """Reads one table of the document."""

    def __init__(self, document: Document, path: Path_, values: Mapping[str, Any], mistakes: list[Mistake]) -> None:
        self.document = document
        self.path = path
        self._values = values
        self._mistakes = mistakes
        self._read: list[str] = []

    @property
    def name(self) -> str:
        """The last part of the path: the name of the step."""
        return self.path[-1]

    def wrong(self, key: str, message: str) -> None:
        """Record a mistake at a key; an empty key stands for the whole table."""
        path = (*self.path, key) if key else self.path
        # A key of an inner table contains dots. So can a quoted key of the file.
        place = path if path in self.document.lines else (*self.path, *key.split("."))
        self._mistakes.append(Mistake(".".join(path), self.document.line_of(place), message))

    def has(self, key: str) -> bool:
        return key in self._values

    def take(self, key: str) -> Any:
        self._read.append(key)
        return self._values.get(key)

    def text(self, key: str, *, needed: str = "") -> str | None:
        """`needed` makes the key required and explains it."""
        value = self.take(key)
        if value is None:
            if needed:
                self.wrong(key, f"is required: {needed}")
            return None
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, f"expected a string, not {shown(value)}")
            return None
        return value

    def required(self, key: str, meaning: str) -> str:
        return self.text(key, needed=meaning) or ""

    def boolean(self, key: str, default: bool) -> bool:
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(key, f"expected true or false, not {shown(value)}")
            return default
        return value

    def number(self, key: str, *, least: int = 1, most: int = 2**31 - 1) -> int | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(key, f"expected an integer from {least} to {most}, not {shown(value)}")
            return None
        return value

    def choice(self, key: str, allowed: Iterable[Choice], default: Choice) -> Choice:
        """One of the members of an enumeration; upper and lower case are equal."""
        value = self.take(key)
        if value is None:
            return default
        members = {str(each).lower(): each for each in allowed}
        if isinstance(value, str) and value.lower() in members:
            return members[value.lower()]
        names = [str(each) for each in members.values()]
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        self.wrong(key, f"{shown(value)} is not one of {', '.join(names)}{hint}")
        return default

    def one_of(self, key: str, allowed: Iterable[str], *, needed: str = "") -> str | None:
        known = list(allowed)
        value = self.text(key, needed=f"{needed}; one of {', '.join(known)}" if needed else "")
        if value is None or value in known:
            return value
        self.wrong(key, f"{shown(value)} is not one of {', '.join(known)}{did_you_mean(value, known)}")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings. A single string is a list of one."""
        value = self.take(key)
        if value is None:
            return ()
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
            self.wrong(key, f"expected a list of strings, not {shown(value)}")
            return ()
        twice = sorted({each for each in listed if listed.count(each) > 1})
        if twice:
            self.wrong(key, f"contains {twice[0]} twice")
        return tuple(listed)

    def duration(self, key: str, *, needed: str = "") -> str | None:
        """A duration as Spark writes it: `10 minutes`."""
        parsed = self._duration(key, needed)
        return None if parsed is None else parsed[0]

    def seconds(self, key: str, default: float) -> float:
        parsed = self._duration(key)
        return default if parsed is None else parsed[1]

    def _duration(self, key: str, needed: str = "") -> tuple[str, float] | None:
        text = self.text(key, needed=needed)
        parsed = None if text is None else parse_duration(text)
        if text is not None and parsed is None:
            self.wrong(key, f"expected a duration such as '10 minutes' or '30s', not {shown(text)}")
        return parsed

    def inner(self, key: str) -> "TableReader | None":
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(key, f"expected a table, not {shown(value)}")
            return None
        return TableReader(self.document, (*self.path, key), value, self._mistakes)

    def options(self, key: str) -> dict[str, str]:
        """Strings by dotted name: `sasl.mechanism = "PLAIN"` and `"sasl.mechanism" = "PLAIN"` are equal."""
        table = self.inner(key)
        return {} if table is None else table.flat()

    def flat(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self._flatten(self._values, (), found)
        self._read += self._values
        return found

    def _flatten(self, values: Mapping[str, Any], names: tuple[str, ...], found: dict[str, str]) -> None:
        for key, value in values.items():
            name = ".".join((*names, key))
            if isinstance(value, Mapping) and len(names) < DEPTH_MAX:
                self._flatten(value, (*names, key), found)
            elif isinstance(value, bool):
                found[name] = str(value).lower()
            elif isinstance(value, (str, int, float)):
                found[name] = str(value)
            else:
                self.wrong(name, f"expected a string, a number or true/false, not {shown(value)}")

    def keys(self) -> list[str]:
        return list(self._values)

    def finish(self) -> None:
        """Report the keys that no check has read: most are typing errors."""
        for key in self._values:
            if key not in self._read:
                allowed = ", ".join(sorted(set(self._read)))
                self.wrong(key, f"unknown key{did_you_mean(key, self._read)} (allowed: {allowed})")


def seconds_of(duration: str) -> float:
    """The length of a duration that `TableReader.duration` returned."""
    parsed = parse_duration(duration)
    assert parsed is not None
    return parsed[1]


def parse_duration(text: str) -> tuple[str, float] | None:
    """The duration as Spark writes it, and in seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    unit = found["unit"].lower()
    known = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    if known is None:
        return None
    count = float(found["count"])
    if count != int(count):
        return f"{round(count * known[1] * 1000)} milliseconds", count * known[1]
    return f"{int(count)} {known[0]}", count * known[1]
