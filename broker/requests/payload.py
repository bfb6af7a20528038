"""Response bodies with records: bytes, and regions of segment files that are sent with sendfile."""

from collections.abc import Sequence
from typing import TypeAlias

from headgate.broker.log.region import Region

Chunk: TypeAlias = bytes | Region


class Payload:
    """A response body as a sequence of chunks."""

    __slots__ = ("chunks", "length")

    def __init__(self, chunks: Sequence[Chunk], length: int) -> None:
        self.chunks = chunks
        self.length = length
