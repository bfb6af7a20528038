"""What the suites ask of a client, so that the same tests run with every one of them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

T0 = int(time.time() - 3_600) * 1_000
"""For records with times of their own: not so long ago that retention takes them away in the middle of a test."""

SESSION_TIMEOUT_MS = 60_000
"""Members leave by LeaveGroup, and static members return in a new process. On a busy machine a process starts slowly:
with a short timeout its session expires first, and the group rebalances."""


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
    """A consumer in a group. It polls on its own until it is closed."""

    def received(self) -> list[Got]: ...

    def assignment(self) -> frozenset[int]: ...

    def rebalances(self) -> int:
        """How often partitions were given or taken since the start."""

    def commit(self, partition: int, offset: int, metadata: str) -> None: ...

    def committed(self, partition: int) -> tuple[int, str] | None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """One client library against one broker."""

    @property
    def name(self) -> str: ...

    @property
    def too_large(self) -> type[Exception]:
        """What it raises when the broker refuses a message for its size."""

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False, acks: str = "all"
    ) -> list[Place]:
        """Where the records went, in the order they were acknowledged; nothing where acks is 0."""

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        """Reads by assignment, without a group."""

    def offsets_for_time(self, topic: str, times: Mapping[int, int]) -> dict[int, int | None]: ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Earliest and latest offset."""

    def join(
        self, group: str, topic: str, *, strategy: str = "eager", instance: str | None = None, commits: bool = False
    ) -> Member: ...

    def close(self) -> None: ...
