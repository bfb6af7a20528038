"""Strict JSON: no NaN or Infinity, and errors instead of stack overflows."""

import json
from typing import Any, NoReturn

from headgate.serdes.errors import EncodeError


def loads(text: bytes | str) -> Any:
    """Parse a text. Raises `EncodeError` and no other error."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"not JSON: {str(error)[:200] or type(error).__name__}") from None


def dumps(document: Any) -> str:
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"not a JSON value: {str(error)[:200]}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
