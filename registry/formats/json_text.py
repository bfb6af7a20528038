"""JSON as Confluent's registry reads and writes it: input may have comments, numbers are written like Java's."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

_BRIEF_CHARS_MAX: Final = 200
_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(/\*.*?\*/|//[^\n]*)', re.DOTALL)
_CONTROL: Final = re.compile(r"\\u00[01][0-9a-f]")
_ENCODE_TEXT: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def load(text: str) -> Any:
    """Parse `text`. Raises `ValueError` with the position of the error, and no other error."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        bare = _COMMENT.sub(lambda match: "" if match.group(1) else match.group(0), text) if "/" in text else text
        if bare == text:
            raise
    try:
        return _DECODER.decode(bare)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def text_of(value: str) -> str:
    """A quoted string."""
    quoted = _ENCODE_TEXT(value)
    if "\\u00" in quoted:
        return _CONTROL.sub(lambda match: f"\\u{match.group(0)[2:].upper()}", quoted)
    return quoted


def dump(value: Any, *, sort_keys: bool = False) -> str:
    """The compact text of `value`, with keys in original or sorted order."""
    parts: list[str] = []
    try:
        _write(value, sort_keys, parts.append)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return "".join(parts)


def brief(value: Any) -> str:
    """The start of the text, for error messages."""
    try:
        text = dump(value)
    except ValueError:
        return "(nested too deeply to be shown)"
    return text if len(text) <= _BRIEF_CHARS_MAX else f"{text[:_BRIEF_CHARS_MAX]}..."


def _write(value: Any, sort_keys: bool, put: Callable[[str], None]) -> None:
    if isinstance(value, str):
        put(text_of(value))
    elif value is None:
        put("null")
    elif isinstance(value, bool):
        put("true" if value else "false")
    elif isinstance(value, int):
        put(str(value))
    elif isinstance(value, float):
        put(number(value))
    elif isinstance(value, dict):
        separator = "{"
        for key in sorted(value) if sort_keys else value:
            put(separator)
            put(text_of(key))
            put(":")
            _write(value[key], sort_keys, put)
            separator = ","
        put("{}" if separator == "{" else "}")
    else:
        separator = "["
        for item in value:
            put(separator)
            _write(item, sort_keys, put)
            separator = ","
        put("[]" if separator == "[" else "]")


def number(value: float) -> str:
    """Format a number like Java's `Double.toString`: always a decimal point, an exponent outside 10^-3 to 10^7."""
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" not in text:
            return text
        digits = f"{value:f}".rstrip("0")
        return f"{digits}0" if digits.endswith(".") else digits
    mantissa, _, exponent = f"{value!r}".partition("e")
    if exponent:
        whole = mantissa if "." in mantissa else f"{mantissa}.0"
        return f"{whole}E{int(exponent)}"
    sign = "-" if value < 0 else ""
    integer, _, fraction = mantissa.lstrip("-").partition(".")
    if integer.strip("0"):
        digits = (integer + fraction).rstrip("0")
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{len(integer) - 1}"
    digits = fraction.lstrip("0")
    return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}E-{len(fraction) - len(digits) + 1}"
