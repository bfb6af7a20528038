"""Batches of records to the brokers, acknowledged by all replicas in sync, each exactly once per attempt.

aiokafka's idempotent producer sends, retries and numbers them. What it does not have is an end: it retries for as long
as brokers are away, so the time is bounded here. Lives on the loop; the writer calls it through `LoopThread`.
"""

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

from headgate.kafka_client.aiokafka_internals import connect_timeout
from headgate.kafka_client.connection import (
    CONNECT_MS_MAX,
    RETRY_SECONDS,
    RETRY_SECONDS_MAX,
    advertised_addresses,
)
from headgate.kafka_client.diagnosis import diagnose
from headgate.spark_udfs.source.cluster import WORKER_CONNECTION_SECONDS_MAX
from headgate.spark_udfs.source.errors import (
    BrokerRefused,
    BrokerUnreachable,
    NotAuthenticated,
    NotAuthorized,
    SourceError,
    TopicMissing,
    source_error,
)
from headgate.spark_udfs.source.options import WriteOptions

BATCHES_UNDER_WAY_MAX = 16
"""Batches that are not acknowledged yet; with the largest of them a task holds 16 MiB by default."""
TOPIC_SECONDS_MAX = 10.0
"""How long a topic is looked for; brokers that create topics by themselves take a moment."""
STOP_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class _Sent:
    topic: str
    partition: int
    records: int
    acknowledged: "asyncio.Future[Any]"


class TopicProducer:
    """Used by one task, from `start` to `finish` or `abandon`."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._producer: Any = None
        """An AIOKafkaProducer, which has no types."""
        self._under_way: deque[_Sent] = deque()

    async def start(self) -> None:
        """Raises `BrokerUnreachable`, `NotAuthenticated`."""
        connection = self._options.connection
        deadline = time.monotonic() + min(WORKER_CONNECTION_SECONDS_MAX, self._options.delivery_ms / 1000)
        pause = RETRY_SECONDS
        while True:
            self._producer = self._made()
            try:
                # It would look for brokers that are not where they say without an end.
                async with asyncio.timeout(max(deadline - time.monotonic(), RETRY_SECONDS_MAX)):
                    with connect_timeout(self._producer.client, CONNECT_MS_MAX):
                        await self._producer.start()
                    return
            except (kafka.KafkaError, OSError) as error:
                advertised = advertised_addresses(self._producer.client)
                await self.abandon()
                reason = source_error(await diagnose(connection, advertised, error))
                if isinstance(reason, NotAuthenticated) or time.monotonic() + pause > deadline:
                    raise reason from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)

    def _made(self) -> Any:
        connection = self._options.connection
        make: Any = AIOKafkaProducer
        return make(
            enable_idempotence=True,
            acks="all",
            compression_type=self._options.compression,
            max_batch_size=self._options.request_bytes_max,
            max_request_size=self._options.request_bytes_max,
            **connection.client_arguments(),
        )

    async def partitions(self, topic: str) -> list[int]:
        """Raises `TopicMissing`, `NotAuthorized`, `BrokerUnreachable`."""
        connection = self._options.connection
        deadline = time.monotonic() + self._options.delivery_ms / 1000
        while True:
            try:
                async with asyncio.timeout(TOPIC_SECONDS_MAX):
                    return sorted(await self._producer.partitions_for(topic))
            except kafka.TopicAuthorizationFailedError as error:
                raise NotAuthorized(f"This user may not write to topic {topic}.") from error
            except (kafka.KafkaError, OSError) as error:
                if await self._is_missing(topic):
                    raise TopicMissing(
                        f"Topic {topic} is not in the cluster at {connection.address}, and the brokers do not create "
                        "it by themselves. Create it first, or check the name."
                    ) from error
                if time.monotonic() > deadline:
                    advertised = advertised_addresses(self._producer.client)
                    raise source_error(await diagnose(connection, advertised, error)) from error
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_missing(self, topic: str) -> bool:
        """Whether the brokers say so, rather than nothing at all."""
        client = self._producer.client
        try:
            async with asyncio.timeout(TOPIC_SECONDS_MAX):
                has_answered = await client.force_metadata_update()
        except (kafka.KafkaError, OSError):
            return False
        return bool(has_answered) and not client.cluster.partitions_for_topic(topic)

    def batch(self) -> Any:
        """An empty BatchBuilder."""
        return self._producer.create_batch()

    async def send(self, batch: Any, topic: str, partition: int) -> None:
        """Queue a batch. Raises what became of an earlier one that failed."""
        async with asyncio.timeout(self._options.delivery_ms / 1000):
            while len(self._under_way) >= BATCHES_UNDER_WAY_MAX:
                await self._settle(self._under_way.popleft())
            acknowledged = await self._producer.send_batch(batch, topic, partition=partition)
        self._under_way.append(_Sent(topic, partition, batch.record_count(), acknowledged))

    async def finish(self) -> None:
        """Returns once every record is acknowledged. Raises a `SourceError` where one is not."""
        async with asyncio.timeout(self._options.delivery_ms / 1000):
            while self._under_way:
                await self._settle(self._under_way.popleft())
        await self._producer.stop()

    async def abandon(self) -> None:
        """Without waiting for what is under way."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        for sent in self._under_way:
            sent.acknowledged.cancel()
        self._under_way.clear()
        # Its own way of stopping would wait for batches that may never be acknowledged.
        producer._closed = True
        with contextlib.suppress(TimeoutError, kafka.KafkaError, OSError):
            async with asyncio.timeout(STOP_SECONDS_MAX):
                if producer._sender.sender_task is not None:
                    await producer._sender.close()
                await producer.client.close()

    async def _settle(self, sent: _Sent) -> None:
        try:
            await sent.acknowledged
        except (kafka.KafkaError, OSError) as error:
            raise self._refused(sent, error) from error

    def _refused(self, sent: _Sent, error: Exception) -> SourceError:
        text = str(error) or type(error).__name__
        where = f"{sent.records} records for {sent.topic}-{sent.partition}"
        if isinstance(error, (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError)):
            return NotAuthorized(f"This user may not write to topic {sent.topic}: {text}")
        if isinstance(error, kafka.MessageSizeTooLargeError):
            return BrokerRefused(
                f"{where} were refused as too large. Lower kafka.max.request.size (now "
                f"{self._options.request_bytes_max}), or raise the topic's max.message.bytes."
            )
        if isinstance(error, kafka.InvalidTimestampError):
            return BrokerRefused(
                f"{where} were refused for their column timestamp: brokers take no time more than an hour ahead "
                "(message.timestamp.after.max.ms), nor one older than message.timestamp.before.max.ms."
            )
        return BrokerRefused(f"{where} were refused: {text}")

    def overdue(self) -> SourceError:
        """For a TimeoutError out of `send` or `finish`."""
        return BrokerUnreachable(
            f"Records were not acknowledged by the brokers at {self._options.connection.address} in "
            f"{self._options.delivery_ms} ms (kafka.delivery.timeout.ms). Some may have been written all the same; the "
            "task is retried, and may write them again."
        )
