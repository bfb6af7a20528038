"""Error messages on the wire."""

from typing import overload

MESSAGE_LENGTH_MAX = 4_000
"""In characters. Old versions of the protocol count a string's bytes in 15 bits, and a message quotes what was sent."""


@overload
def clipped(message: str) -> str: ...
@overload
def clipped(message: None) -> None: ...
def clipped(message: str | None) -> str | None:
    if message is None or len(message) <= MESSAGE_LENGTH_MAX:
        return message
    return message[: MESSAGE_LENGTH_MAX - 1] + "…"
