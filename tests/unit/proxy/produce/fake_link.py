"""Fake link to the brokers. It records all batches, and the test decides when a broker responds."""

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import TopicNotFound
from headgate.kafka_client.producer.connection import Placed
from headgate.kafka_client.producer.records import Batch, ProducerIdentity


@dataclass(frozen=True)
class Sent:
    """A batch as sent to the broker."""

    partition: int
    producer_id: int
    sequence: int
    values: tuple[bytes | None, ...]


@dataclass
class FakeLink:
    partition_count: int = 2
    sent: list[Sent] = field(default_factory=list)
    answers: "list[asyncio.Future[dict[tuple[str, int], Placed]]]" = field(default_factory=list)
    refreshes: int = 0
    leader_id: int | None = 1
    _identities: Any = field(default_factory=lambda: count(100))

    def known_partitions(self, topic: str) -> tuple[int, ...] | None:
        return tuple(range(self.partition_count)) if topic == "t" else None

    async def check_topic(self, topic: str) -> None:
        await self.partitions(topic)

    async def partitions(self, topic: str) -> tuple[int, ...]:
        found = self.known_partitions(topic)
        if found is None:
            raise TopicNotFound
        return found

    def leader(self, topic: str, partition: int) -> int | None:
        return self.leader_id

    async def refresh(self) -> None:
        self.refreshes += 1

    async def new_identity(self) -> ProducerIdentity:
        return ProducerIdentity(next(self._identities), 0)

    async def produce(self, node_id: int, batches: list[Batch]) -> dict[tuple[str, int], Placed]:
        assert len({(batch.topic, batch.partition) for batch in batches}) == len(batches), "a partition twice"
        for batch in batches:
            assert batch.buffer is not None
            read = DefaultRecordBatch(bytes(batch.buffer))
            assert read.validate_crc()
            producer_id, sequence = read.producer_id, read.base_sequence
            values = tuple(record.value for record in read)
            self.sent.append(Sent(batch.partition, producer_id, sequence, values))
        answer: asyncio.Future[dict[tuple[str, int], Placed]] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer

    async def close(self) -> None: ...

    def place(self, offset: int, partition: int = 0) -> None:
        """Complete the last request successfully."""
        self.answers[-1].set_result({("t", partition): Placed(None, offset, None)})

    def refuse(self, error: ErrorCode, partition: int = 0) -> None:
        self.answers[-1].set_result({("t", partition): Placed(error, -1, None)})

    def lose(self, error: Exception) -> None:
        self.answers[-1].set_exception(error)
