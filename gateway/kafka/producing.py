"""Sends a stream of records through aiokafka's producer, in order per partition, with bounded memory."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from headgate.gateway.kafka.error_codes import register_error_codes
from headgate.gateway.records.record import NewRecord
from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.aiokafka_internals import MetadataClient
from headgate.kafka_client.errors import KafkaClientError, PartitionNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.requests import Api
from headgate.proxy.admin.cluster import AdminCluster
from headgate.proxy.admin.refusals import check
from headgate.proxy.admin.topics import Topic, find_topic, find_topics

# The broker is the one to say what is too large, and it names the limit that was broken.
request_bytes_max = 128 * 1024 * 1024
batch_bytes_max = 256 * 1024

# Receipts that may be outstanding; what they hold besides is bounded by aiokafka's one batch per partition.
unacknowledged_max = 10_000

# A topic that the cluster creates by itself is there within moments; one that it does not, never.
creation_attempts_max = 20
creation_retry_seconds = 0.1


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a record went; the offset is -1 when nobody acknowledged it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


async def topic_to_produce_to(cluster: AdminCluster, name: str) -> Topic:
    """The topic, created if the cluster does that by itself. Raises ProxyError."""
    there = await find_topics(cluster, [name], missing_ok=True)
    if there:
        return there[name]
    answer = await cluster.ask(Api.METADATA, {"topics": [{"name": name}], "allow_auto_topic_creation": True})
    (created,) = answer.topics
    if not created.error_code.retriable:
        check(created.error_code, None, f"topic {name}")
    # Apache Kafka creates it behind this answer and calls it unknown until then.
    for _ in range(creation_attempts_max):
        there = await find_topics(cluster, [name], missing_ok=True)
        if there and there[name].partitions:
            return there[name]
        await asyncio.sleep(creation_retry_seconds)
    return await find_topic(cluster, name)


class Sender:
    """An async context: leaving it waits for every acknowledgement."""

    def __init__(
        self,
        connection: ConnectionOptions,
        topic: Topic,
        *,
        acks: str,
        compression: str,
        on_receipt: Callable[[Receipt], None],
    ) -> None:
        register_error_codes()
        aiokafka = import_module("aiokafka")
        self._errors: Any = import_module("aiokafka.errors")
        self._topic = topic
        self._partitions = {partition.index for partition in topic.partitions}
        self._on_receipt = on_receipt
        self._outstanding: deque[Any] = deque()
        self._producer: Any = aiokafka.AIOKafkaProducer(
            **connection.client_arguments(),
            acks="all" if acks == "all" else int(acks),
            # Only then can a retry not send twice.
            enable_idempotence=acks == "all",
            compression_type=None if compression == "none" else compression,
            max_batch_size=batch_bytes_max,
            max_request_size=request_bytes_max,
        )
        self._producer.client.__class__ = MetadataClient

    async def send(self, record: NewRecord) -> None:
        """Raises Refused for an earlier record as well: what is acknowledged, is acknowledged in order."""
        if record.partition is not None and record.partition not in self._partitions:
            last = len(self._topic.partitions) - 1
            raise PartitionNotFound(f"topic {self._topic.name} has no partition {record.partition}; it has 0 to {last}")
        try:
            future = await self._queue(record)
        except self._errors.KafkaError as error:
            raise self._fault(error) from error
        self._outstanding.append(future)
        while self._outstanding and (self._outstanding[0].done() or len(self._outstanding) > unacknowledged_max):
            await self._acknowledge()

    async def _queue(self, record: NewRecord) -> Any:
        """The future of its acknowledgement."""
        if record.key is not None or record.value is not None:
            return await self._producer.send(
                self._topic.name,
                record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
        # aiokafka's send() refuses a record with neither, which Kafka takes; a batch of its own does not mind.
        batch = self._producer.create_batch()
        batch.append(timestamp=record.timestamp_ms, key=None, value=None, headers=list(record.headers))
        partition = min(self._partitions) if record.partition is None else record.partition
        return await self._producer.send_batch(batch, self._topic.name, partition=partition)

    async def _acknowledge(self) -> None:
        try:
            sent = await self._outstanding.popleft()
        except self._errors.KafkaError as error:
            raise self._fault(error) from error
        if sent is None:
            self._on_receipt(Receipt(self._topic.name, -1, -1, -1))
        else:
            self._on_receipt(Receipt(sent.topic, sent.partition, sent.offset, sent.timestamp))

    async def flush(self) -> None:
        while self._outstanding:
            await self._acknowledge()

    def _fault(self, error: Any) -> KafkaClientError:
        found = client_error(error)
        found.subject = f"topic {self._topic.name}"
        return found

    async def __aenter__(self) -> Self:
        try:
            await self._producer.start()
        except self._errors.KafkaError as error:
            raise self._fault(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            for future in self._outstanding:
                future.cancel()
            await self._producer.stop()
