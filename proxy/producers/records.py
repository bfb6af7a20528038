"""A record on its way, the batch it travels in, and the ticket by which its sender learns where it went."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.proxy.errors import ProxyError

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class OutgoingRecord:
    """Made by the hundred thousand a second: not frozen, which would cost three times as much."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] = ()

    def size(self) -> int:
        size = 32 + len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:
            # A character takes up to four bytes; an upper bound is enough.
            size += 4 * len(name) + len(value or b"") + 10
        return size


@dataclass(frozen=True, slots=True)
class Delivered:
    """Where a record went."""

    partition: int
    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """What the broker knows an idempotent producer by (KIP-98)."""

    producer_id: int
    epoch: int


class Batch:
    """Records of one partition that leave together. `settled` is set once, with or without `error`."""

    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "buffer",
        "builder",
        "bytes",
        "count",
        "deadline",
        "error",
        "identity",
        "identity_lost",
        "in_doubt",
        "is_keyed",
        "partition",
        "renewals",
        "sequence",
        "settled",
        "topic",
    )

    def __init__(self, topic: str, partition: int, builder: Any, settled: "asyncio.Future[None]", deadline: float):
        self.topic = topic
        self.partition = partition
        self.builder = builder
        """aiokafka's DefaultRecordBatchBuilder, until the batch is built."""
        self.buffer: bytearray | None = None
        self.count = 0
        self.bytes = 0
        self.deadline = deadline
        self.settled = settled
        self.error: ProxyError | None = None
        self.base_offset = -1
        self.append_time_ms: int | None = None
        self.identity: ProducerIdentity | None = None
        self.sequence = 0
        self.is_keyed = False
        """The producer id and sequence belong to one request with an Idempotency-Key and never change."""
        self.attempts = 0
        self.renewals = 0
        """How often the batch moved to a new shared producer id."""
        self.in_doubt = False
        """An attempt ended without a definite response: the broker may have stored the records."""
        self.identity_lost = False
        """A keyed batch was rejected because of its producer id or sequence, and is known not to be stored."""

    def settle(self, error: ProxyError | None = None) -> None:
        self.error = error
        self.builder = self.buffer = None
        if not self.settled.done():
            self.settled.set_result(None)


class Ticket(NamedTuple):
    """A record's place in a batch under way."""

    batch: Batch
    position: int
    timestamp_ms: int

    @property
    def partition(self) -> int:
        return self.batch.partition

    def outcome(self) -> Delivered:
        """For a batch that is settled. Raises ProxyError."""
        batch = self.batch
        if batch.error is not None:
            raise batch.error
        offset = batch.base_offset + self.position if batch.base_offset >= 0 else -1
        return Delivered(batch.partition, offset, batch.append_time_ms or self.timestamp_ms)

    async def delivered(self) -> Delivered:
        """Raises ProxyError."""
        if not self.batch.settled.done():
            await asyncio.wait((self.batch.settled,))
        return self.outcome()


async def settled(tickets: Sequence[Ticket]) -> None:
    """Returns once the outcome of every one of them is known."""
    last: Batch | None = None
    for ticket in tickets:
        batch = ticket.batch
        if batch is not last:
            last = batch
            if not batch.settled.done():
                # Not awaited itself: a request that is cancelled must not cancel the batch that others share.
                await asyncio.wait((batch.settled,))
