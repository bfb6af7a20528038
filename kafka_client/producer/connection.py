"""The connection of a producer: metadata, producer ids and Produce requests.

It opens on first use and again after a failure. While the brokers are unavailable, callers fail at once. The dispatcher
decides about retries.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from aiokafka import errors as kafka
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.structs import TopicPartition
from kio.schema.errors import ErrorCode

from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.any_broker import send_to_any
from headgate.kafka_client.connection import advertised_addresses, open_client
from headgate.kafka_client.errors import KafkaClientError, NotAuthorized, TopicNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.records import Batch, ProducerIdentity
from headgate.kafka_client.producer.response_codes import error_code

# After a failed connection attempt, callers fail at once for this time, so that their attempts do not queue up.
down_seconds: Final = 0.5
# A new topic needs a short time until all brokers know it and its partitions have leaders.
new_topic_attempts_max: Final = 8
new_topic_pause_seconds: Final = 0.1
identity_pause_seconds: Final = 0.1
# Topics without a produce for this time are removed from metadata requests, as in the Java client.
topic_idle_seconds: Final = 300.0

# Kafka's rule for topic names.
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")

# DescribeConfigs: the resource type of a broker, and the config for automatic topic creation.
_BROKER: Final = 4
_AUTO_CREATE: Final = "auto.create.topics.enable"


class Placed(NamedTuple):
    """A broker's response for one batch."""

    error: ErrorCode | None
    base_offset: int
    append_time_ms: int | None


class ProducerConnection:
    def __init__(self, connection: ConnectionOptions, options: ProducerOptions) -> None:
        self._connection = connection
        self._options = options
        self._client: Any = None
        """A `MetadataClient`, which has no type hints."""
        self._opening = asyncio.Lock()
        self._down: tuple[float, KafkaClientError] | None = None
        self._partitions: dict[str, tuple[int, ...]] = {}
        """Partitions of the topics that were used since the last metadata update."""
        self._used: dict[str, float] = {}

    def known_partitions(self, topic: str) -> tuple[int, ...] | None:
        """Return the partitions in the cached metadata."""
        found = self._partitions.get(topic)
        if found is None and self._client is not None:
            known = self._client.cluster.partitions_for_topic(topic)
            if known:
                found = self._partitions[topic] = tuple(sorted(known))
        return found

    async def check_topic(self, topic: str) -> None:
        """Check that the topic exists or that a produce can create it. Does not create the topic.

        Raises TopicNotFound, NotAuthorized, BrokerUnavailable.
        """
        if self.known_partitions(topic) is not None:
            return
        if not _TOPIC_NAME.match(topic):
            raise TopicNotFound
        client = await self._opened()
        if await self._exists(client, topic):
            return
        if not self._options.auto_create_topics or not await self._broker_creates_topics(client):
            raise TopicNotFound

    async def _broker_creates_topics(self, client: Any) -> bool:
        """Return `auto.create.topics.enable` of a broker. True if the broker does not return this config."""
        answer = await self._ask(client, lambda node: DescribeConfigsRequest([(_BROKER, str(node), [_AUTO_CREATE])]))
        configs = [config for _, _, _, _, entries in answer.resources for config in entries]
        return not any(name == _AUTO_CREATE and value == "false" for name, value, *_ in configs)

    async def partitions(self, topic: str) -> tuple[int, ...]:
        """Return the partitions of a topic. May create a missing topic. Raises TopicNotFound, BrokerUnavailable."""
        found = self.known_partitions(topic)
        if found is not None:
            return found
        if not _TOPIC_NAME.match(topic):
            raise TopicNotFound
        client = await self._opened()
        if not await self._exists(client, topic):
            if not self._options.auto_create_topics:
                raise TopicNotFound
            # The only request that may create a topic implicitly.
            await self._exists(client, topic, creates=True)
        for attempt in range(new_topic_attempts_max):
            if attempt and not await self._exists(client, topic):
                # Kafka reports a topic as unknown while it creates the topic.
                await asyncio.sleep(new_topic_pause_seconds)
                continue
            try:
                async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                    self._used[topic] = time.monotonic()
                    # A topic that was added before causes no metadata update.
                    await (client.force_metadata_update() if attempt else client.add_topic(topic))
                    found = self.known_partitions(topic)
            except TimeoutError as error:
                raise client_error(error) from error
            if found is not None:
                return found
            await asyncio.sleep(new_topic_pause_seconds)
        raise TopicNotFound

    async def _exists(self, client: Any, topic: str, *, creates: bool = False) -> bool:
        """Request the metadata of one topic, without adding it to later metadata updates."""
        asked = MetadataRequest([topic], allow_auto_topic_creation=creates)
        answer = await self._ask(client, lambda _: asked)
        error_class = kafka.for_code(answer.topics[0][0]) if answer.topics else kafka.UnknownTopicOrPartitionError
        if error_class is kafka.TopicAuthorizationFailedError:
            raise NotAuthorized(f"Not authorized to access topic {topic}.")
        if error_class is kafka.InvalidTopicError:
            raise TopicNotFound
        return error_class is not kafka.UnknownTopicOrPartitionError

    def _updated(self, _: object) -> None:
        now = time.monotonic()
        self._used.update(dict.fromkeys(self._partitions, now))
        self._partitions.clear()
        idle = [topic for topic, at in self._used.items() if now - at > topic_idle_seconds]
        if idle and self._client is not None:
            for topic in idle:
                del self._used[topic]
            self._client.set_topics(list(self._used))

    def leader(self, topic: str, partition: int) -> int | None:
        if self._client is None:
            return None
        found: int | None = self._client.cluster.leader_for_partition(TopicPartition(topic, partition))
        return None if found == -1 else found

    async def refresh(self) -> None:
        """Update the metadata. Does not raise if the update fails."""
        if self._client is not None:
            try:
                async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                    await self._client.force_metadata_update()
            except TimeoutError:
                pass

    async def new_identity(self) -> ProducerIdentity:
        """Raises KafkaClientError."""
        client = await self._opened()
        deadline = time.monotonic() + self._connection.request_timeout_ms / 1000
        asked = InitProducerIdRequest(None, -1)  # type: ignore[arg-type]  # no transactional id
        while True:
            answer = await self._ask(client, lambda _: asked)
            error_class = kafka.for_code(answer.error_code)
            if error_class is kafka.NoError:
                return ProducerIdentity(answer.producer_id, answer.producer_epoch)
            if not error_class.retriable or time.monotonic() > deadline:
                raise client_error(error_class())
            # A broker that has just started has no producer ids yet.
            await asyncio.sleep(identity_pause_seconds)

    async def _ask(self, client: Any, request_for: Callable[[int], Any]) -> Any:
        """Return the response of any broker. A broker may process the request twice. Raises KafkaClientError."""
        try:
            try:
                return await send_to_any(client, request_for)
            except (kafka.NodeNotReadyError, kafka.KafkaConnectionError):
                # No known broker is reachable. They may have new addresses.
                await self.refresh()
                return await send_to_any(client, request_for)
        except Exception as error:
            raise client_error(error) from error

    async def produce(self, node_id: int, batches: list[Batch]) -> dict[tuple[str, int], Placed]:
        """Send one request with at most one batch per partition. Responses identify batches by their partition.

        Omits a partition that occurs twice in the response, because neither result is certain. Raises aiokafka's
        errors.
        """
        topics: dict[str, dict[int, Any]] = {}
        for batch in batches:
            partitions = topics.setdefault(batch.topic, {})
            assert batch.partition not in partitions, "two batches for one partition in one request"
            partitions[batch.partition] = batch.buffer
        data = [(topic, list(partitions.items())) for topic, partitions in topics.items()]
        request = ProduceRequest(None, self._options.acks, self._connection.request_timeout_ms, data)
        response = await self._client.send(node_id, request)
        if self._options.acks == 0:
            return {(batch.topic, batch.partition): Placed(None, -1, None) for batch in batches}
        return _placed(response.topics)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def advertised(self) -> list[str]:
        """Return the addresses of the brokers in the metadata. Empty before the first connection."""
        return [] if self._client is None else advertised_addresses(self._client)

    async def _opened(self) -> Any:
        while self._client is None:
            await self._open()
        return self._client

    async def _open(self) -> None:
        async with self._opening:
            if self._client is not None:
                return
            if self._down is not None and time.monotonic() < self._down[0]:
                raise self._down[1]
            try:
                async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                    client = await open_client(self._connection)
            except Exception as error:
                refused = client_error(error)
                self._down = (time.monotonic() + down_seconds, refused)
                raise refused from error
            client.cluster.add_listener(self._updated)
            self._client = client


def _placed(topics: Any) -> dict[tuple[str, int], Placed]:
    found: dict[tuple[str, int], Placed] = {}
    repeated: set[tuple[str, int]] = set()
    for topic, rows in topics:
        # The number of fields depends on the version. All versions start with these four fields.
        for partition, code, base_offset, append_time_ms, *_ in rows:
            if (topic, partition) in found:
                repeated.add((topic, partition))
            # -1 means that the topic uses message.timestamp.type=CreateTime.
            append_time = append_time_ms if append_time_ms >= 0 else None
            found[topic, partition] = Placed(error_code(code), base_offset, append_time)
    for key in repeated:
        del found[key]
    return found
