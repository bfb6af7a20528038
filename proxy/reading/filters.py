"""Filters on rows. All tokens of a filter must match.

    error                 text in the key, the value or a header, ignoring case
    key:abc               the key, or a field of it, contains the text
    value.user.id>=10     compares a field with a number, a text or a timestamp; : = != > >= < <=
    header.trace:77       a header of that name contains the text
    partition:0 offset>100 timestamp>=2026-01-31T00:00:00Z schema:12
    -token "two words"    negation; quotes for text with spaces

A path contains fields of objects and indexes of arrays (`value.items.0.price`). It omits the branch of an Avro union:
`value.age>3` matches `{"age":{"int":4}}`.
"""

import base64
import binascii
import datetime
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.proxy.errors import BadRequest

FILTER_CHARS_MAX: Final = 1000
TOKENS_MAX: Final = 20
"""Limits the cost of a filter, because every token is tested on every record."""
PATH_STEPS_MAX: Final = 20

_TOKEN: Final = re.compile(r'(-?)((?:[^\s"]|"[^"]*")+)')
_TERM: Final = re.compile(
    r"(key|value|header|headers|partition|offset|timestamp|schema)((?:\.[^\s:=!<>]+)?)(>=|<=|!=|:|=|>|<)(.*)", re.DOTALL
)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_MISSING: Final = object()

Predicate = Callable[[Mapping[str, Any]], bool]
"""Takes a v3 row."""


@dataclass(frozen=True, slots=True)
class _Term:
    field: str
    path: tuple[str, ...]
    compare: str
    text: str

    def holds(self, row: Mapping[str, Any]) -> bool:
        found = self._value(row)
        if found is _MISSING:
            return self.compare == "!="
        if isinstance(found, list) and self.field == "schema":
            return any(_holds(self.compare, each, self.text) for each in found)
        return _holds(self.compare, found, self.text)

    def _value(self, row: Mapping[str, Any]) -> Any:
        if self.field in ("key", "value"):
            side = row.get(self.field)
            return _walk(None if side is None else side.get("data"), self.path)
        if self.field in ("header", "headers"):
            name = ".".join(self.path)
            for header in row["headers"]:
                if header["name"] == name:
                    return _header_text(header)
            return _MISSING
        if self.field == "partition":
            return row["partition_id"]
        if self.field == "schema":
            return [side["schema_id"] for side in (row.get("key"), row.get("value")) if side and "schema_id" in side]
        return row[self.field]


def compile_filter(texts: Sequence[str]) -> Predicate | None:
    """Returns None without tokens. Raises BadRequest."""
    terms: list[tuple[bool, Callable[[Mapping[str, Any]], bool]]] = []
    for text in texts:
        if len(text) > FILTER_CHARS_MAX:
            raise BadRequest(f"filter has more than {FILTER_CHARS_MAX} characters.")
        for negated, token in _TOKEN.findall(text):
            terms.append((bool(negated), _compile(token)))
    if len(terms) > TOKENS_MAX:
        raise BadRequest(f"filter has more than {TOKENS_MAX} tokens.")
    if not terms:
        return None

    def holds(row: Mapping[str, Any]) -> bool:
        return all(term(row) is not negated for negated, term in terms)

    return holds


def _compile(token: str) -> Callable[[Mapping[str, Any]], bool]:
    match = _TERM.fullmatch(token)
    if match is None:
        return _FreeText(token.replace('"', "").casefold()).holds
    path = tuple(match[2][1:].split(".")) if match[2] else ()
    if len(path) > PATH_STEPS_MAX:
        raise BadRequest(f"a path in filter has more than {PATH_STEPS_MAX} steps.")
    if match[1] in ("header", "headers") and not path:
        raise BadRequest("filter: write header.NAME:text to look into a header.")
    return _Term(match[1], path, match[3], match[4].replace('"', "")).holds


@dataclass(frozen=True, slots=True)
class _FreeText:
    text: str

    def holds(self, row: Mapping[str, Any]) -> bool:
        if any(
            self.text in header["name"].casefold() or self.text in _header_text(header).casefold()
            for header in row["headers"]
        ):
            return True
        return any(side is not None and _contains(side.get("data"), self.text) for side in (row["key"], row["value"]))


def _walk(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        if isinstance(value, dict) and step not in value and len(value) == 1:
            value = next(iter(value.values()))  # The branch of an Avro union.
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _holds(compare: str, found: Any, text: str) -> bool:
    if isinstance(found, dict) and len(found) == 1:
        inner = next(iter(found.values()))
        if not isinstance(inner, (dict, list)):
            found = inner  # The branch of an Avro union.
    if compare == ":":
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return _equal(found, text)
        return _contains(found, text.casefold())
    if compare == "=":
        return _equal(found, text)
    if compare == "!=":
        return not _equal(found, text)
    left, right = _comparable(found, text)
    if left is None:
        return False
    return _COMPARE[compare](left, right)


def _equal(found: Any, text: str) -> bool:
    if found is None or isinstance(found, bool):
        return text.lower() == {None: "null", True: "true", False: "false"}[found]
    left, right = _comparable(found, text)
    return left is not None and left == right


def _comparable(found: Any, text: str) -> tuple[Any, Any]:
    """Returns both values as numbers, timestamps or texts. Returns (None, None) if they cannot be compared."""
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        number = _number(text)
        return (found, number) if number is not None else (None, None)
    if not isinstance(found, str):
        return None, None
    left, right = _moment(found), _moment(text)
    if left is not None and right is not None:
        return left, right
    return found, text


def _number(text: str) -> int | float | None:
    try:
        return int(text) if len(text) < 100 else None
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _moment(text: str) -> datetime.datetime | None:
    if not text[:4].isdigit() or len(text) < 10:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


def _contains(value: Any, text: str) -> bool:
    """Tests whether the value contains the text, ignoring case. Uses a stack, because payloads may be nested deeply."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if text in each.casefold():
                return True
        elif isinstance(each, dict):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
        elif each is not None and text in str(each).casefold():
            return True
    return False


def _header_text(header: Mapping[str, Any]) -> str:
    try:
        return base64.b64decode(header["value"] or "").decode("utf-8", "replace")
    except binascii.Error:
        return ""
