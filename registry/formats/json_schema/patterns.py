"""Regular expressions of ECMA-262 (JSON Schema) with a time limit.

Uses `regex` instead of `re`, because it supports `\\p{…}` and timeouts. Without a timeout, a pattern such as `(a+)+$`
could block the process for any time.
"""

import functools
from typing import Final

import regex

# Normal patterns take microseconds on a short text. Patterns that exceed this limit backtrack excessively.
SEARCH_SECONDS_MAX: Final = 0.25

PATTERN_CHARACTERS_MAX: Final = 10_000

# Compiling takes about 10 microseconds and 250 bytes per character. The cache uses at most about 100 MB.
_KEPT_CHARACTERS_MAX: Final = 200
_KEPT_SHORT_MAX: Final = 2_048
_KEPT_LONG_MAX: Final = 16

_TOKEN: Final = regex.compile(
    r"\\u\{([0-9A-Fa-f]+)\}|\\c([A-Za-z])|\\k<(\w+)>|\\(.)|(\[\^?\]?)|(\])|(\(\?<(?![=!]))|(\$)", regex.DOTALL
)

# Escapes with different meanings follow ECMA-262: digits and word characters are ASCII.
_ESCAPES: Final = {"d": "[0-9]", "D": "[^0-9]", "w": "[A-Za-z0-9_]", "W": "[^A-Za-z0-9_]"}
_ESCAPES_IN_CLASS: Final = {"d": "0-9", "w": "A-Za-z0-9_"}


class TooCostly(Exception):
    """The search exceeded the time limit: the pattern backtracks excessively on this text."""


def translate(pattern: str) -> "regex.Pattern[str]":
    """Compile a pattern. Raises `regex.error` for an invalid one."""
    return _short(pattern) if len(pattern) <= _KEPT_CHARACTERS_MAX else _long(pattern)


def _compiled(pattern: str) -> "regex.Pattern[str]":
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise regex.error(f"longer than {PATTERN_CHARACTERS_MAX} characters")
    try:
        return regex.compile(_rewritten(pattern), regex.V0)
    except (RecursionError, OverflowError, ValueError, MemoryError) as error:
        raise regex.error(f"too complex: {type(error).__name__}") from None


_short = functools.lru_cache(maxsize=_KEPT_SHORT_MAX)(_compiled)
_long = functools.lru_cache(maxsize=_KEPT_LONG_MAX)(_compiled)


def found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text, as `pattern` and `patternProperties` require."""
    try:
        return translate(pattern).search(text, timeout=SEARCH_SECONDS_MAX) is not None
    except TimeoutError:
        raise TooCostly(pattern) from None


def _rewritten(pattern: str) -> str:
    in_class = False

    def token(match: "regex.Match[str]") -> str:
        nonlocal in_class
        code, control, name, escaped, opening, closing, group, end = match.groups()
        if code is not None:
            return regex.escape(chr(min(int(code, 16), 0x10FFFF)))
        if control is not None:
            return f"\\x{ord(control) % 32:02x}"
        if name is not None:
            return f"(?P={name})"
        if escaped is not None:
            return _escape(escaped, in_class)
        if opening is not None:
            if in_class:  # only the first bracket opens a class; this one is a literal
                in_class = not opening.endswith("]")
                return f"\\{opening}"
            if opening == "[]":
                return "(?!)"  # the empty class of ECMA-262, which never matches
            if opening == "[^]":
                return "(?s:.)"
            in_class = True
            return str(opening)
        if closing is not None:
            in_class = False
            return "]"
        if in_class:
            return match.group()
        return "(?P<" if group is not None else r"\Z" if end is not None else match.group()

    return _TOKEN.sub(token, pattern)


def _escape(letter: str, in_class: bool) -> str:
    if in_class:
        return _ESCAPES_IN_CLASS.get(letter, f"\\{letter}")
    if letter == "/":
        return "/"
    return _ESCAPES.get(letter, f"\\{letter}")
