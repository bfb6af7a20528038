"""Error responses: the JSON body that all HTTP APIs share, and tables that map exceptions to HTTP status and code."""

from collections.abc import ItemsView, Mapping
from typing import Final, NamedTuple

import orjson

INTERNAL_SERVER_ERROR: Final = "Internal Server Error"
REASONS: Final = {
    400: "HTTP 400 Bad Request",
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
    500: INTERNAL_SERVER_ERROR,
}
"""Messages that Confluent's servers (Jersey) send. Some clients compare them."""


class ErrorStatus(NamedTuple):
    status: int
    error_code: int
    """The HTTP status, or the HTTP status followed by two digits that distinguish errors with the same status."""


class ErrorTable:
    """Maps exception types to HTTP status and error code. One table per API."""

    def __init__(self, entries: Mapping[type[Exception], tuple[int, int]]) -> None:
        self._entries = {kind: ErrorStatus(*entry) for kind, entry in entries.items()}

    def __contains__(self, kind: type[Exception]) -> bool:
        return kind in self._entries

    def items(self) -> ItemsView[type[Exception], ErrorStatus]:
        return self._entries.items()

    def status_of(self, error: Exception) -> ErrorStatus:
        """The entry of the exception's class, or of its nearest base class. 500 if neither has one."""
        for kind in type(error).__mro__:
            found = self._entries.get(kind)
            if found is not None:
                return found
        return ErrorStatus(500, 500)


def error_body(code: int, message: str) -> bytes:
    return orjson.dumps({"error_code": code, "message": message}, default=str)
