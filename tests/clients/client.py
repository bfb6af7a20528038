"""The client interface of the test suites, so that the same tests run with every client library."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

T0 = int(time.time() - 3_600) * 1_000
"""Base timestamp for records. It is recent, so that retention does not delete records during a test."""

SESSION_TIMEOUT_MS = 60_000
"""Members leave with LeaveGroup, and static members return in a new process. On a busy machine, a process starts
slowly. With a short timeout, its session would expire first, and the group would rebalance."""


@dataclass(frozen=True, slots=True)
class Sent:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Got:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


@dataclass(frozen=True, slots=True)
class Place:
    partition: int
    offset: int


class Member(Protocol):
    """A consumer in a group. It polls in the background until it is closed."""

    def received(self) -> list[Got]: ...

    def assignment(self) -> frozenset[int]: ...

    def rebalances(self) -> int:
        """Return how often partitions were assigned or revoked."""

    def commit(self, partition: int, offset: int, metadata: str) -> None: ...

    def committed(self, partition: int) -> tuple[int, str] | None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """One client library, connected to one broker."""

    @property
    def name(self) -> str: ...

    @property
    def too_large(self) -> type[Exception]:
        """The exception type that the client raises for MESSAGE_TOO_LARGE."""

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False, acks: str = "all"
    ) -> list[Place]:
        """Return the positions of the records in acknowledgement order, or nothing if acks is 0."""

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        """Read by manual assignment, without a group."""

    def offsets_for_time(self, topic: str, times: Mapping[int, int]) -> dict[int, int | None]: ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the earliest and latest offset."""

    def join(
        self, group: str, topic: str, *, strategy: str = "eager", instance: str | None = None, commits: bool = False
    ) -> Member: ...

    def close(self) -> None: ...
