"""Takes the values of one table of a document, each checked; what is wrong is noted, and a stand-in returned.

The checks of `spark_udfs.pipeline.checks` are written with it: they ask for what they know, and `finish` reports what
nobody asked for.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from headgate.spark_udfs.pipeline.document import DEPTH_MAX, Document, Path_
from headgate.spark_udfs.pipeline.errors import Mistake, did_you_mean, shown

Choice = TypeVar("Choice", bound=StrEnum)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
"""Steps are names of SQL views."""
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


class Table:
    """One table of the document while it is read."""

    def __init__(self, document: Document, path: Path_, values: Mapping[str, Any], mistakes: list[Mistake]) -> None:
        self._document = document
        self.path = path
        self._values = values
        self._mistakes = mistakes
        self._asked: list[str] = []

    def wrong(self, key: str, message: str) -> None:
        path = (*self.path, key) if key else self.path
        # Keys below an inner table come with dots; those of the file itself may be quoted and have dots as well.
        place = path if path in self._document.lines else (*self.path, *key.split("."))
        self._mistakes.append(Mistake(".".join(path), self._document.line_of(place), message))

    def has(self, key: str) -> bool:
        return key in self._values

    def take(self, key: str) -> Any:
        self._asked.append(key)
        return self._values.get(key)

    def text(self, key: str, *, needed: str = "") -> str | None:
        """`needed` says what is missing where it must be given."""
        value = self.take(key)
        if value is None:
            if needed:
                self.wrong(key, f"is missing: {needed}")
            return None
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, f"a text is expected, not {shown(value)}")
            return None
        return value

    def required(self, key: str, meaning: str) -> str:
        return self.text(key, needed=meaning) or ""

    def boolean(self, key: str, default: bool) -> bool:
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(key, f"true or false is expected, not {shown(value)}")
            return default
        return value

    def number(self, key: str, *, least: int = 1, most: int = 2**31 - 1) -> int | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(key, f"a whole number from {least} to {most} is expected, not {shown(value)}")
            return None
        return value

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        value = self.take(key)
        if value is None:
            return default
        allowed = [str(each) for each in kind]
        by_name = {each.lower(): each for each in allowed}
        if isinstance(value, str) and value.lower() in by_name:
            return kind(by_name[value.lower()])
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        self.wrong(key, f"{shown(value)} is not one of {', '.join(allowed)}{hint}")
        return default

    def one_of(self, key: str, allowed: Iterable[str], *, needed: str = "") -> str | None:
        known = list(allowed)
        value = self.text(key, needed=f"{needed}; one of {', '.join(known)}" if needed else "")
        if value is None or value in known:
            return value
        self.wrong(key, f"{shown(value)} is not one of {', '.join(known)}{did_you_mean(value, known)}")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single text stands for a list of one."""
        value = self.take(key)
        if value is None:
            return ()
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
            self.wrong(key, f"a list of texts is expected, not {shown(value)}")
            return ()
        twice = sorted({each for each in listed if listed.count(each) > 1})
        if twice:
            self.wrong(key, f"{twice[0]} is listed twice")
        return tuple(listed)

    def duration(self, key: str, *, needed: str = "") -> str | None:
        """As Spark writes intervals: `10 minutes`."""
        text = self.text(key, needed=needed)
        if text is None:
            return None
        read = parse_duration(text)
        if read is None:
            self.wrong(key, f"a duration such as '10 minutes' or '30s' is expected, not {shown(text)}")
            return None
        return read[0]

    def seconds(self, key: str, default: float) -> float:
        text = self.text(key)
        if text is None:
            return default
        read = parse_duration(text)
        if read is None:
            self.wrong(key, f"a duration such as '10 seconds' is expected, not {shown(text)}")
            return default
        return read[1]

    def inner(self, key: str) -> "Table | None":
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(key, f"a table is expected, not {shown(value)}")
            return None
        return Table(self._document, (*self.path, key), value, self._mistakes)

    def options(self, key: str) -> dict[str, str]:
        """Texts by dotted name: `[kafka]` `sasl.mechanism = "PLAIN"` and `"sasl.mechanism" = "PLAIN"` are one."""
        table = self.inner(key)
        return {} if table is None else table.flat()

    def flat(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self._flatten(self._values, (), found)
        self._asked += self._values
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
                self.wrong(name, f"a text, a number or true/false is expected, not {shown(value)}")

    def names(self) -> list[str]:
        return list(self._values)

    def finish(self) -> None:
        """Reports keys that nobody asked for: a typing error, and silence about it costs an afternoon."""
        for key in self._values:
            if key not in self._asked:
                allowed = ", ".join(sorted(set(self._asked)))
                self.wrong(key, f"is not known here{did_you_mean(key, self._asked)} (known: {allowed})")


def seconds_of(duration: str) -> float:
    """Of what `Table.duration` gave."""
    read = parse_duration(duration)
    assert read is not None
    return read[1]


def parse_duration(text: str) -> tuple[str, float] | None:
    """As Spark writes it, and in seconds."""
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
