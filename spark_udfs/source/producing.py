"""Writes record batches with the idempotent producer of `kafka_client`. Runs on the event loop of the process."""

import asyncio
import time
from collections import deque
from typing import Any

from kio.schema.errors import ErrorCode

from headgate.kafka_client import errors as client
from headgate.kafka_client.connection import RETRY_SECONDS, RETRY_SECONDS_MAX
from headgate.kafka_client.diagnosis import diagnose
from headgate.kafka_client.producer.connection import ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.producer import Producer, new_builder
from headgate.kafka_client.producer.records import Batch
from headgate.spark_udfs.source.cluster import WORKER_CONNECTION_SECONDS_MAX
from headgate.spark_udfs.source.errors import (
    BrokerRefused,
    BrokerUnreachable,
    NotAuthorized,
    SourceError,
    TopicMissing,
    source_error,
)
from headgate.spark_udfs.source.options import WriteOptions

BATCHES_UNDER_WAY_MAX = 16
"""Maximum number of unacknowledged batches. With the default batch size, a task holds 16 MiB."""


class OpenBatch:
    """A record batch that is being filled."""

    def __init__(self, options: ProducerOptions) -> None:
        self.builder: Any = new_builder(options)
        self.count = 0

    def append(self, *, timestamp: int | None, key: bytes | None, value: bytes | None, headers: Any) -> bool:
        """Returns False if the record does not fit. The first record always fits."""
        if self.builder.append(self.count, timestamp, key, value, list(headers)) is None:
            return False
        self.count += 1
        return True


class TopicProducer:
    """Producer of one task, from `start` to `finish` or `abandon`."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._producer_options = ProducerOptions(
            batch_bytes_max=options.request_bytes_max,
            delivery_timeout_ms=options.delivery_ms,
            close_timeout_ms=0,
            compression=options.compression or "none",
        )
        self._link = ProducerConnection(options.connection, self._producer_options)
        self._producer = Producer(options.connection, self._producer_options, self._link)
        self._under_way: deque[Batch] = deque()

    async def start(self) -> None:
        """Connects and requests a producer id. Raises `BrokerUnreachable`, `NotAuthenticated`, `BadOption`."""
        deadline = time.monotonic() + min(WORKER_CONNECTION_SECONDS_MAX, self._options.delivery_ms / 1000)
        pause = RETRY_SECONDS
        while True:
            try:
                await self._producer.open()
                return
            except (client.BrokerUnavailable, client.RetriableError) as error:
                if time.monotonic() + pause > deadline:
                    raise await self._unreachable(error) from error
                # The brokers may have new addresses: re-bootstrap.
                await self._link.close()
            except client.KafkaClientError as error:
                raise source_error(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)

    async def partitions(self, topic: str) -> list[int]:
        """Raises `TopicMissing`, `NotAuthorized`, `BrokerUnreachable`."""
        deadline = time.monotonic() + self._options.delivery_ms / 1000
        while True:
            try:
                return list(await self._producer.partitions(topic))
            except client.TopicNotFound as error:
                raise TopicMissing(
                    f"Topic {topic} is not in the cluster at {self._options.connection.address}, and the brokers do "
                    "not create topics automatically. Create it first, or check the name."
                ) from error
            except (client.BrokerUnavailable, client.RetriableError) as error:
                if time.monotonic() > deadline:
                    raise await self._unreachable(error) from error
                await self._link.close()
            except client.KafkaClientError as error:
                raise source_error(error) from error
            await asyncio.sleep(RETRY_SECONDS)

    def batch(self) -> OpenBatch:
        return OpenBatch(self._producer_options)

    async def send(self, batch: OpenBatch, topic: str, partition: int) -> None:
        """Queues a batch. Raises the error of an earlier batch."""
        while len(self._under_way) >= BATCHES_UNDER_WAY_MAX:
            await self._settle(self._under_way.popleft())
        self._under_way.append(self._producer.enqueue(topic, partition, batch.builder, batch.count))

    async def finish(self) -> None:
        """Returns after every record is acknowledged. Raises `SourceError`."""
        while self._under_way:
            await self._settle(self._under_way.popleft())
        await self._producer.close()

    async def abandon(self) -> None:
        """Closes the connections without waiting for acknowledgements."""
        self._under_way.clear()
        await self._producer.close()

    async def _settle(self, batch: Batch) -> None:
        await batch.wait()
        if batch.error is not None:
            raise self._rejected(batch, batch.error) from batch.error

    async def _unreachable(self, error: Exception) -> SourceError:
        return source_error(await diagnose(self._options.connection, self._link.advertised(), error))

    def _rejected(self, batch: Batch, error: Exception) -> SourceError:
        records = f"{batch.count} records for {batch.topic}-{batch.partition}"
        if isinstance(error, client.NotAuthorized):
            return NotAuthorized(f"This user may not write to topic {batch.topic}: {error}")
        if isinstance(error, (client.BrokerUnavailable, client.RetriableError)):
            return BrokerUnreachable(
                f"{records} were not acknowledged by the brokers at {self._options.connection.address} within "
                f"{self._options.delivery_ms} ms (kafka.delivery.timeout.ms): {error} Spark retries the task, which "
                "may write them again."
            )
        code = getattr(error, "kafka_code", None)
        if code is ErrorCode.message_too_large:
            return BrokerRefused(
                f"{records} were rejected as too large. Lower kafka.max.request.size (now "
                f"{self._options.request_bytes_max}), or raise the topic's max.message.bytes."
            )
        if code is ErrorCode.invalid_timestamp:
            return BrokerRefused(
                f"{records} were rejected because of the column timestamp. Brokers accept timestamps up to an hour "
                "ahead (message.timestamp.after.max.ms) and not older than message.timestamp.before.max.ms."
            )
        return BrokerRefused(f"{records} were rejected: {error}")
