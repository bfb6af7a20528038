"""Fake broker with Kafka's rules for idempotent producers (KIP-98), behind a network that loses and delays messages.

One guarantee always holds: a batch that the broker rejects as out of order is not in its log.
"""

import asyncio
import copy
import random
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiokafka import errors as kafka
from aiokafka.record.default_records import DefaultRecordBatch
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable
from headgate.kafka_client.producer.connection import Placed
from headgate.kafka_client.producer.records import Batch, ProducerIdentity

WINDOW_BATCHES = 5


@dataclass
class Producer:
    window: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=WINDOW_BATCHES))
    """(first sequence, records, base offset)"""

    @property
    def next_sequence(self) -> int:
        first, records, _ = self.window[-1]
        return first + records


class Partition:
    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.producers: dict[int, Producer] = {}
        self.broken: set[int] = set()
        """Producer ids whose sequence the broker lost."""

    def append(self, producer_id: int, sequence: int, values: list[bytes]) -> Placed:
        producer = self.producers.setdefault(producer_id, Producer())
        for first, records, base_offset in producer.window:
            if (first, records) == (sequence, len(values)):
                return Placed(None, base_offset, None)
        if producer_id in self.broken or (producer.window and sequence != producer.next_sequence):
            return Placed(ErrorCode.out_of_order_sequence_number, -1, None)
        base_offset = len(self.values)
        self.values += values
        producer.window.append((sequence, len(values), base_offset))
        return Placed(None, base_offset, None)


class FakeBroker:
    """Replaces the link to the brokers. There are two nodes, and node p % 2 leads partition p."""

    def __init__(self, seed: int, partition_count: int, fault_rate: float) -> None:
        self.random = random.Random(seed)
        self.partitions_of_t = [Partition() for _ in range(partition_count)]
        self.fault_rate = fault_rate
        self.in_flight: set[int] = set()
        self.late: list[asyncio.Task[None]] = []
        self._identities = count(100)

    def connected(self) -> "FakeBroker":
        """Return a link of another worker to the same brokers.

        Each worker has at most one batch of a partition in flight.
        """
        other = copy.copy(self)
        other.in_flight = set()
        return other

    def known_partitions(self, topic: str) -> tuple[int, ...] | None:
        return tuple(range(len(self.partitions_of_t)))

    async def check_topic(self, topic: str) -> None:
        await self.partitions(topic)

    async def partitions(self, topic: str) -> tuple[int, ...]:
        return tuple(range(len(self.partitions_of_t)))

    def leader(self, topic: str, partition: int) -> int | None:
        return None if self._happens(0.05) else partition % 2

    async def refresh(self) -> None:
        await asyncio.sleep(0)

    async def new_identity(self) -> ProducerIdentity:
        await asyncio.sleep(0)
        if self._happens(0.2):
            raise BrokerUnavailable("no producer id just now")
        return ProducerIdentity(next(self._identities), 0)

    async def close(self) -> None: ...

    async def produce(self, node_id: int, batches: list[Batch]) -> dict[tuple[str, int], Placed]:
        sent = [(batch.partition, *_read(batch)) for batch in batches]
        partitions = {partition for partition, *_ in sent}
        assert len(partitions) == len(sent), "a partition twice in one request"
        assert not partitions & self.in_flight, "two batches of one partition are in flight"
        self.in_flight |= partitions
        try:
            return await self._produce(sent)
        finally:
            self.in_flight -= partitions

    async def _produce(self, sent: list[tuple[int, int, int, list[bytes]]]) -> dict[tuple[str, int], Placed]:
        await asyncio.sleep(self.random.random() / 1000)
        if self._happens(0.3):
            raise kafka.NodeNotReadyError("not connected")
        if self._happens(0.3):
            # The network delays the request. It arrives after the request timeout of the sender.
            self.late.append(asyncio.create_task(self._arrive_late(sent)))
            raise kafka.RequestTimedOutError
        answers = {("t", row[0]): self._append(*row) for row in sent}
        if self._happens(0.5):
            raise kafka.KafkaConnectionError("the response was lost")
        if self._happens(0.2):
            del answers[next(iter(answers))]
        return answers

    async def _arrive_late(self, sent: list[tuple[int, int, int, list[bytes]]]) -> None:
        await asyncio.sleep(self.random.random() / 50)
        for partition, producer_id, sequence, values in sent:
            self.partitions_of_t[partition].append(producer_id, sequence, values)

    def _append(self, partition: int, producer_id: int, sequence: int, values: list[bytes]) -> Placed:
        if self._happens(0.3):
            return Placed(
                self.random.choice((ErrorCode.not_leader_or_follower, ErrorCode.not_enough_replicas)), -1, None
            )
        if self._happens(0.1):
            return Placed(ErrorCode.policy_violation, -1, None)
        log = self.partitions_of_t[partition]
        known = log.producers.get(producer_id)
        if self._happens(0.3) and (known is None or not any(mark[0] == sequence for mark in known.window)):
            log.broken.add(producer_id)
        before = len(log.values)
        placed = log.append(producer_id, sequence, values)
        if placed.error is None and len(log.values) == before and self._happens(0.5):
            return Placed(ErrorCode.duplicate_sequence_number, -1, None)
        if placed.error is None and self._happens(0.3):
            late: Any = (
                ErrorCode.not_enough_replicas_after_append,
                ErrorCode.request_timed_out,
                ErrorCode.kafka_storage_error,
            )
            return Placed(self.random.choice(late), -1, None)
        return placed

    def _happens(self, share: float) -> bool:
        return self.random.random() < self.fault_rate * share


def _read(batch: Batch) -> tuple[int, int, list[bytes]]:
    assert batch.buffer is not None
    read = DefaultRecordBatch(bytes(batch.buffer))
    assert read.validate_crc()
    return read.producer_id, read.base_sequence, [record.value or b"" for record in read]
