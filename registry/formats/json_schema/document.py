"""Reads and writes JSON without loss: numbers keep their digits, objects their order.

Python's parser recurses and rounds. Therefore this module checks the nesting first, and reads numbers as `int` or
`Decimal`. Follows RFC 8259. The compact text equals the text that Confluent's registry stores (Jackson: no spaces, only
required escapes, decimals like `BigDecimal`).
"""

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

from headgate.registry.errors import InvalidSchema

# More than schemas need, and half of Python's stack: its JSON reader and writer use one frame per level.
DEPTH_LEVELS_MAX: Final = 500

# The conversion of longer integers takes quadratic time.
NUMBER_DIGITS_MAX: Final = 1_000

# Limits the exact arithmetic of `multipleOf` to numbers of about a thousand digits.
EXPONENT_MAX: Final = 1_000

_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[\[\]{}]', re.DOTALL)
_CONTROL_ESCAPE: Final = re.compile(r"\\u00[01][0-9a-f]")
_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


def read(text: str) -> Any:
    """Parse a JSON text. The last of duplicate members wins, as in Confluent's registry."""
    check_depth(text)
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_decimal, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise InvalidSchema("nested too deeply") from None
    return value


def check_depth(text: str) -> None:
    if text.count("{") + text.count("[") <= DEPTH_LEVELS_MAX:
        return
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match.group()[0]
        if mark in "{[":
            depth += 1
            if depth > DEPTH_LEVELS_MAX:
                raise InvalidSchema(f"nested more than {DEPTH_LEVELS_MAX} levels deep, at character {match.start()}")
        elif mark in "}]":
            depth -= 1


def compact(value: Any, *, sort: bool = False) -> str:
    """The compact text. `sort` orders members by name in UTF-16, like Java."""
    try:
        text = json.dumps(_sorted(value) if sort else value, separators=(",", ":"), ensure_ascii=False)
    except TypeError:  # a Decimal, which the C encoder does not support
        return _write(_sorted(value) if sort else value)
    return _write(_sorted(value) if sort else value) if _CONTROL_ESCAPE.search(text) else text


def same_key(value: Any) -> str:
    """A key that is equal for values that JSON Schema treats as equal: any order of members, 1 equals 1.0, true differs
    from 1.
    """
    return _write(_sorted(value), by_value=True)


def shortened(value: Any, characters_max: int = 120) -> str:
    text = _write(value, characters_max=characters_max)
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def _write(root: Any, *, by_value: bool = False, characters_max: float = math.inf) -> str:
    """Write without recursion. Stops soon after `characters_max`."""
    parts: list[str] = []
    written = 0
    # Either a finished text (in a tuple, to distinguish it from a JSON string) or a value that is not written yet.
    stack: list[Any] = [root]
    while stack and written <= characters_max:
        item = stack.pop()
        if isinstance(item, tuple):
            parts.append(item[0])
            written += len(item[0])
        elif isinstance(item, dict):
            stack.append(("}",))
            members = list(item.items())
            for index in range(len(members) - 1, -1, -1):
                name, value = members[index]
                stack.append(value)
                stack.append((f"{',' if index else ''}{_quoted(name)}:",))
            stack.append(("{",))
        elif isinstance(item, list):
            stack.append(("]",))
            for index in range(len(item) - 1, -1, -1):
                stack.append(item[index])
                if index:
                    stack.append((",",))
            stack.append(("[",))
        else:
            parts.append(_scalar(item, by_value))
            written += len(parts[-1])
    return "".join(parts)


def _scalar(value: Any, by_value: bool) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        if by_value:
            return _numeral(value)
        return str(value.copy_abs() if value.is_zero() else value)
    if isinstance(value, float) and by_value and math.isfinite(value):
        return _numeral(Decimal(repr(value)))
    return str(value)


def _numeral(value: Decimal) -> str:
    """The unique text of a number. `Decimal.normalize` would round to the precision of its context."""
    if value == value.to_integral_value():
        return str(int(value))
    sign, digits, exponent = value.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    assert isinstance(exponent, int)  # the parser rejects NaN and infinities
    return f"{'-' if sign else ''}{significant}e{exponent + len(digits) - len(significant)}"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _sorted(root: Any) -> Any:
    """A copy with sorted members. It works level by level, without recursion."""
    holder: list[Any] = [root]
    todo: list[tuple[Any, Any]] = [(holder, 0)]
    while todo:
        container, slot = todo.pop()
        value = container[slot]
        if isinstance(value, dict):
            copy: Any = {name: value[name] for name in sorted(value, key=_utf16)}
            container[slot] = copy
            todo.extend((copy, name) for name in copy)
        elif isinstance(value, (list, tuple)):
            copy = list(value)
            container[slot] = copy
            todo.extend((copy, index) for index in range(len(copy)))
    return holder[0]


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _integer(text: str) -> int:
    if len(text) > NUMBER_DIGITS_MAX:
        raise InvalidSchema(f"a number of more than {NUMBER_DIGITS_MAX} digits: {text[:20]}…")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > NUMBER_DIGITS_MAX:
        raise InvalidSchema(f"a number of more than {NUMBER_DIGITS_MAX} digits: {text[:20]}…")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InvalidSchema(f"a number out of range: {text[:40]}") from None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > EXPONENT_MAX or abs(value.adjusted()) > EXPONENT_MAX:
        raise InvalidSchema(f"a number outside 10 to the power of {EXPONENT_MAX}: {text[:40]}")
    return value


def _constant(text: str) -> NoReturn:
    raise InvalidSchema(f"{text} is not JSON")
