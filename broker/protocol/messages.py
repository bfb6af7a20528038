"""Error messages in responses."""

from typing import overload

MESSAGE_LENGTH_MAX = 4_000
"""In characters. A message can quote the request. Strings of non-flexible versions have at most 32,767 bytes."""


@overload
def clipped(message: str) -> str: ...
@overload
def clipped(message: None) -> None: ...
def clipped(message: str | None) -> str | None:
    if message is None or len(message) <= MESSAGE_LENGTH_MAX:
        return message
    return message[: MESSAGE_LENGTH_MAX - 1] + "…"
