"""Sends a stream of records in order per partition, with bounded memory (`kafka_client.producer`)."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from headgate.gateway.records.record import NewRecord
from headgate.kafka_client.admin.topics import Topic, find_topic, find_topics
from headgate.kafka_client.errors import PartitionNotFound, check
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.options import ACKS_ALL, ProducerOptions
from headgate.kafka_client.producer.producer import Producer
from headgate.kafka_client.producer.records import OutgoingRecord, Ticket
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api

# Large, so that the broker rejects oversized records. Its error contains the limit.
record_bytes_max: Final = 128 * 1024 * 1024
batch_bytes_max: Final = 256 * 1024
pending_bytes_max: Final = 16 * 1024 * 1024
unacknowledged_max: Final = 10_000
# Limits all attempts of a batch together.
delivery_timeout_ms: Final = 30_000

# A broker with auto.create.topics.enable creates the topic within a short time.
creation_attempts_max = 20
creation_retry_seconds = 0.1


@dataclass(frozen=True, slots=True)
class Receipt:
    """The location of a stored record. The offset is -1 without an acknowledgement."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


async def topic_to_produce_to(cluster: RequestClient, name: str) -> Topic:
    """The broker creates a missing topic if auto.create.topics.enable is set. Raises KafkaClientError."""
    there = await find_topics(cluster, [name], missing_ok=True)
    if there:
        return there[name]
    answer = await cluster.send(Api.METADATA, {"topics": [{"name": name}], "allow_auto_topic_creation": True})
    (created,) = answer.topics
    if not created.error_code.retriable:
        check(created.error_code, None, f"topic {name}")
    # Apache Kafka creates the topic after this response.
    for _ in range(creation_attempts_max):
        there = await find_topics(cluster, [name], missing_ok=True)
        if there and there[name].partitions:
            return there[name]
        await asyncio.sleep(creation_retry_seconds)
    return await find_topic(cluster, name)


class Sender:
    """Async context manager. A normal exit waits for every acknowledgement."""

    def __init__(
        self,
        connection: ConnectionOptions,
        topic: Topic,
        *,
        acks: str,
        compression: str,
        on_receipt: Callable[[Receipt], None],
    ) -> None:
        self._topic = topic
        self.partitions = tuple(sorted(partition.index for partition in topic.partitions))
        self._on_receipt = on_receipt
        self._outstanding: deque[Ticket] = deque()
        options = ProducerOptions(
            batch_bytes_max=batch_bytes_max,
            record_bytes_max=record_bytes_max,
            pending_bytes_max=2 * record_bytes_max,  # `send` waits before this limit.
            delivery_timeout_ms=delivery_timeout_ms,
            close_timeout_ms=0,
            acks=ACKS_ALL if acks == "all" else int(acks),
            compression=compression,
            auto_create_topics=False,
        )
        self._producer = Producer(connection, options)

    async def send(self, record: NewRecord) -> None:
        """Queues a record. Raises KafkaClientError, which may belong to an earlier record."""
        if record.partition is not None and record.partition not in self.partitions:
            last = len(self._topic.partitions) - 1
            raise PartitionNotFound(f"topic {self._topic.name} has no partition {record.partition}; it has 0 to {last}")
        outgoing = OutgoingRecord(
            record.key, record.value, record.partition, record.timestamp_ms, tuple(record.headers)
        )
        now_ms = time.time_ns() // 1_000_000
        self._outstanding.append(self._producer.place_one(self._topic.name, outgoing, self.partitions, now_ms))
        while self._outstanding and (self._outstanding[0].batch.is_settled or self._is_full()):
            await self._acknowledge()

    def _is_full(self) -> bool:
        return len(self._outstanding) > unacknowledged_max or self._producer.pending_bytes > pending_bytes_max

    async def _acknowledge(self) -> None:
        delivered = await self._outstanding.popleft().delivered()
        self._on_receipt(Receipt(self._topic.name, delivered.partition, delivered.offset, delivered.timestamp_ms or -1))

    async def flush(self) -> None:
        while self._outstanding:
            await self._acknowledge()

    async def __aenter__(self) -> Self:
        await self._producer.partitions(self._topic.name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self._producer.close()
