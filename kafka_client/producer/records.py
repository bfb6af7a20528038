"""Records to produce, the batches that contain them, and the tickets that report where they were stored."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headgate.kafka_client.errors import KafkaClientError

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class OutgoingRecord:
    """A record to produce, one of up to 100,000 per second.

    Not frozen, because a frozen dataclass takes three times as long to create.
    """

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] = ()

    def size(self) -> int:
        size = 32 + len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:
            # A character takes up to four bytes in UTF-8. An upper bound is enough.
            size += 4 * len(name) + len(value or b"") + 10
        return size


@dataclass(frozen=True, slots=True)
class Delivered:
    """The location of a stored record. The offset is -1 without an acknowledgement (acks=0)."""

    partition: int
    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Producer id and epoch of an idempotent producer (KIP-98)."""

    producer_id: int
    epoch: int

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0


NOT_IDEMPOTENT: Final = ProducerIdentity(-1, -1)
"""Used with acks other than all."""


class Batch:
    """Records of one partition that are sent together. It is settled once, with or without `error`."""

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
        "is_settled",
        "partition",
        "renewals",
        "sequence",
        "topic",
        "waiters",
    )

    def __init__(self, topic: str, partition: int, builder: Any, deadline: float) -> None:
        self.topic = topic
        self.partition = partition
        self.builder = builder
        """aiokafka's DefaultRecordBatchBuilder, until the batch is built."""
        self.buffer: bytearray | None = None
        self.count = 0
        self.bytes = 0
        self.deadline = deadline
        self.is_settled = False
        self.waiters: list[asyncio.Future[None]] = []
        self.error: KafkaClientError | None = None
        self.base_offset = -1
        self.append_time_ms: int | None = None
        self.identity: ProducerIdentity | None = None
        self.sequence: int
        self.is_keyed = False
        """True if the caller owns the producer id and sequence number. They never change."""
        self.attempts = 0
        self.renewals = 0
        """How many times the batch moved to a new shared producer id."""
        self.in_doubt = False
        """True if an attempt ended without a definite response. The broker may have stored the records."""
        self.identity_lost = False
        """True if a broker rejected the producer id or sequence number of a keyed batch. The batch is not stored."""

    def settle(self, error: KafkaClientError | None = None) -> None:
        self.error = error
        self.builder = self.buffer = None
        self.is_settled = True
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Return when the batch is settled. A caller that is cancelled does not affect the others."""
        if not self.is_settled:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            await waiter


class Ticket(NamedTuple):
    """The position of a record in a batch."""

    batch: Batch
    position: int
    timestamp_ms: int

    @property
    def partition(self) -> int:
        return self.batch.partition

    def outcome(self) -> Delivered:
        """Returns the result of a settled batch. Raises the error of the batch."""
        batch = self.batch
        if batch.error is not None:
            raise batch.error
        offset = batch.base_offset + self.position if batch.base_offset >= 0 else -1
        return Delivered(batch.partition, offset, batch.append_time_ms or self.timestamp_ms)

    async def delivered(self) -> Delivered:
        """Wait for the outcome. Raises the error of the batch."""
        await self.batch.wait()
        return self.outcome()


async def settled(tickets: Sequence[Ticket]) -> None:
    """Return once the outcome of every ticket is known."""
    for ticket in tickets:
        if not ticket.batch.is_settled:
            await ticket.batch.wait()
