"""Validates many JSON texts. The result is that of orjson, which also validates single texts.

msgspec validates a text three times as fast, because it creates no objects. It accepts some texts that orjson rejects:
invalid UTF-8, and numbers beyond the range of a double. orjson validates texts that may contain them.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import orjson

from headgate.proxy.reading.payloads import one_line

SHORT_BYTES_MAX: Final = 200
"""A number of this length with an exponent below 100 is in the range of a double."""
_LARGE_EXPONENT: Final = re.compile(rb"e(?<=[0-9]e)\+?[0-9]{3,}(?=[\s,\]}]|\Z)")
_LARGE_UPPERCASE_EXPONENT: Final = re.compile(rb"E(?<=[0-9]E)\+?[0-9]{3,}(?=[\s,\]}]|\Z)")
_validate: Final = msgspec.json.Decoder(msgspec.Raw).decode


def json_lines(texts: list[bytes]) -> list[bytes] | None:
    """Returns the texts without line breaks if orjson accepts each of them. Returns None for some other texts."""
    joined = b",".join(texts)
    validate: Callable[[bytes], Any] = _validate if _is_simple(texts, joined) else orjson.loads
    try:
        deque(map(validate, texts), maxlen=0)
    except (msgspec.DecodeError, orjson.JSONDecodeError):
        return None
    return list(map(one_line, texts)) if b"\n" in joined or b"\r" in joined else texts


def _is_simple(texts: Sequence[bytes], joined: bytes) -> bool:
    """Whether orjson and msgspec agree. Escapes are left to orjson, because they may form invalid Unicode."""
    if b"\\" in joined or max(map(len, texts)) > SHORT_BYTES_MAX or _LARGE_EXPONENT.search(joined):
        return False
    if b"E" in joined and _LARGE_UPPERCASE_EXPONENT.search(joined):
        return False
    return joined.isascii() or _is_utf8(joined)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
