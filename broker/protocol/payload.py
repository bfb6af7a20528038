"""What goes back to a client: bytes, and stretches of segment files that are sent without being read."""

from collections.abc import Sequence
from typing import TypeAlias

from headgate.broker.log.region import Region

Chunk: TypeAlias = bytes | Region


class Payload:
    """A response body as a row of chunks, for answers that hold records."""

    __slots__ = ("chunks", "length")

    def __init__(self, chunks: Sequence[Chunk], length: int) -> None:
        self.chunks = chunks
        self.length = length


class NoReply:
    """The request is done and asks for no answer (Produce with acks=0)."""

    __slots__ = ()


class Disconnect:
    """No answer exists for this; the connection ends, for the reason given."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


NO_REPLY = NoReply()
