"""Outcomes of a request: the response, the error of one part of it, or no response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

from kio.schema.errors import ErrorCode

MESSAGE_LENGTH_MAX = 4_000
"""In characters. A message can quote the request. Strings of non-flexible versions have at most 32,767 bytes."""

Answer: TypeAlias = Mapping[str, object]
"""A response with the field names of the newest version. Nested structures are mappings, arrays are sequences."""


class NoReply:
    """The request has succeeded and gets no response (Produce with acks=0)."""

    __slots__ = ()


class Disconnect:
    """The protocol has no response for this error. The server logs the reason and closes the connection."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


NO_REPLY = NoReply()


@dataclass(frozen=True, slots=True)
class RecordError:
    """An invalid record, by its position in the batch (KIP-467)."""

    batch_index: int
    message: str


class Refusal(Exception):
    """The error of one part of a request, for example of one topic or partition. The other parts are executed.

    Contains the error code and the message for the client. `broker.node.error_codes` maps other exceptions to it.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = record_errors

    def without_traceback(self) -> "Refusal":
        """Return a copy without traceback. The traceback would keep the decompressed records in memory."""
        return Refusal(self.code, self.message, self.record_errors)


@overload
def clipped(message: str) -> str: ...
@overload
def clipped(message: None) -> None: ...
def clipped(message: str | None) -> str | None:
    """Limit the length of an error message in a response."""
    if message is None or len(message) <= MESSAGE_LENGTH_MAX:
        return message
    return message[: MESSAGE_LENGTH_MAX - 1] + "…"
