"""The sans-I/O steps of a registry request.

A use case is a generator. It yields a request or a pause, and receives the response. `serdes.client.sync` and
`serdes.client.asynchronous` run the same generators.
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
class HttpResponse:
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class NoResponse:
    detail: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """The first step: the client holds its lock from here to the end."""


Effect: TypeAlias = HttpRequest | Pause | Turn
Reply: TypeAlias = HttpResponse | NoResponse | None

Result = TypeVar("Result")
Steps: TypeAlias = Generator[Effect, Reply, Result]
