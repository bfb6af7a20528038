"""Query parameters. Each error message names the parameter."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import HTTPConnection

from headgate.proxy.errors import BadRequest

LOGICAL_FORMS: Final = ("avro", "native")
LOGICAL_HEADER: Final = "headgate-logical"


def check_query_names(request: HTTPConnection, *known: str) -> None:
    """Reject unknown parameters. Use this where a misspelled parameter would delete data. Raises BadRequest."""
    for name in request.query_params:
        if name not in known:
            accepted = f"The parameters are: {', '.join(known)}." if known else "This request has no parameters."
            raise BadRequest(f"{name[:40]!r} is not a query parameter of this request. {accepted}")


def text_query(request: HTTPConnection, name: str) -> str | None:
    return request.query_params.get(name)


def int_query(request: HTTPConnection, name: str, *, minimum: int = 0, maximum: int = 2**63 - 1) -> int | None:
    """Raises BadRequest."""
    text = request.query_params.get(name)
    if text is None:
        return None
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and minimum <= int(text) <= maximum):
        raise BadRequest(f"{name} must be an integer from {minimum} to {maximum}, not {text[:40]!r}.")
    return int(text)


def flag_query(request: HTTPConnection, name: str) -> bool:
    """Raises BadRequest."""
    text = request.query_params.get(name)
    if text is None or text.lower() in ("false", "0", "no"):
        return False
    if text.lower() in ("true", "1", "yes", ""):
        return True
    raise BadRequest(f"{name} must be true or false, not {text[:40]!r}.")


def native_logical(query: Mapping[str, str], headers: Mapping[str, str], default: str) -> bool:
    """Whether the request wants the readable form of Avro's logical types. Raises BadRequest."""
    word = query.get("logical", headers.get(LOGICAL_HEADER, default))
    if word not in LOGICAL_FORMS:
        raise BadRequest(f"logical must be one of {', '.join(LOGICAL_FORMS)}, not {word[:40]!r}.")
    return word == "native"


def one_of_query(request: HTTPConnection, name: str, allowed: tuple[str, ...]) -> str | None:
    """Raises BadRequest."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if text.lower() not in allowed:
        raise BadRequest(f"{name} must be one of {', '.join(allowed)}, not {text[:40]!r}.")
    return text.lower()
