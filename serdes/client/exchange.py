"""What a conversation with the registry is made of, apart from sockets and clocks.

A use case is a generator: it yields a request to send or a pause to make, and is sent the answer. `serdes.client.sync`
and `serdes.client.asynchronous` drive the same generators, one with threads in mind, one with an event loop.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class NoAnswer:
    detail: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """Comes first: whoever drives the steps makes others wait from here to the end."""


Effect: TypeAlias = HttpRequest | Pause | Turn
Reply: TypeAlias = HttpAnswer | NoAnswer | None

Result = TypeVar("Result")
Steps: TypeAlias = Generator[Effect, Reply, Result]
