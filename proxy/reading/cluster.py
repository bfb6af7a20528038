"""Reads without a consumer group: topics, offsets and fetches of record batches.

Does not use aiokafka's consumer, because a stateless read needs no assignment, background task or prefetching. A client
that stops reading causes no load on the brokers.

A broker processes the requests of a connection in order. Reads that return at once share a few connections. Reads that
wait for records use separate connections (`Lane`).
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka import errors as kafka

from headgate.kafka_client.connection import open_client
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.errors import (
    BrokerUnavailable,
    LeaderNotFound,
    PartitionNotFound,
    RetriableError,
    TopicNotFound,
)
from headgate.kafka_client.fetch import Fetched, Isolation, fetch_request, list_offsets, read_fetch
from headgate.proxy.kafka_errors import proxy_error
from headgate.proxy.settings import ProxySettings

METADATA_SECONDS_MIN: Final = 0.1
"""Minimum time between two metadata updates. Requests for unknown topics must not overload the brokers."""
METADATA_AGE_MS: Final = 60_000
RETRY_SECONDS: Final = 0.1
QUICK_LANES: Final = 4
"""Connections to each broker for reads that do not wait."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A separate connection to each broker."""

    number: int


class Cluster:
    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self.decompression = Decompression(
            settings.fetch_batch_decompressed_bytes_max, settings.fetch_record_decompressed_bytes_max
        )
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._updated = 0.0
        self._turn = 0

    async def topics(self, *, fresh: bool = False) -> list[str]:
        client = await self._connected()
        if fresh:
            await self._update(client)
        return sorted(client.cluster.topics(exclude_internal_topics=False))

    async def partitions(self, topic: str) -> list[int]:
        """Raises TopicNotFound. Never creates a topic."""
        client = await self._connected()
        found = client.cluster.partitions_for_topic(topic)
        if not found:
            await self._update(client)
            found = client.cluster.partitions_for_topic(topic)
        if not found:
            if topic in client.cluster.unauthorized_topics:
                raise proxy_error(kafka.TopicAuthorizationFailedError(topic))
            raise TopicNotFound
        return sorted(found)

    async def check_partition(self, topic: str, partition: int) -> None:
        if partition in await self.partitions(topic):
            return
        await self._update(await self._connected())
        if partition not in await self.partitions(topic):
            raise PartitionNotFound

    def leader(self, at: TopicPartition) -> int:
        """Returns the leader in the cached metadata, or -1 if it is unknown."""
        node = None if self._client is None else self._client.cluster.leader_for_partition(at)
        return -1 if node is None else int(node)

    async def offsets(
        self, topic: str, times: Mapping[int, int], isolation: Isolation = Isolation.READ_UNCOMMITTED
    ) -> dict[int, int | None]:
        """Returns the offset for EARLIEST, LATEST or a timestamp in milliseconds. None if all records are older."""
        found: dict[int, int | None] = {}
        deadline = time.monotonic() + self._settings.kafka_request_timeout_ms / 1000
        missing = dict(times)
        while missing:
            try:
                found |= await self._offsets_once(topic, missing, isolation)
            except (kafka.KafkaError, OSError, TimeoutError) as error:
                await self._before_retry(error, topic, deadline)
            missing = {partition: at for partition, at in times.items() if partition not in found}
        return found

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        bytes_max: int,
        wait_ms: int = 0,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        lane: Lane | None = None,
    ) -> dict[TopicPartition, Fetched]:
        """Sends one request to each leader. Omits partitions without a known leader: the caller fetches them again."""
        client = await self._connected()
        by_node: dict[int, dict[TopicPartition, int]] = {}
        stale = False
        for at, offset in positions.items():
            node = client.cluster.leader_for_partition(at)
            if node is None or node < 0:
                stale = True
                continue
            by_node.setdefault(node, {})[at] = offset
        if lane is None:
            self._turn = (self._turn + 1) % QUICK_LANES
            lane = Lane(self._turn)
        answers = await asyncio.gather(
            *(
                client.send(
                    node,
                    fetch_request(wanted, bytes_max=bytes_max, wait_ms=wait_ms, isolation=isolation),
                    group=lane,
                )
                for node, wanted in by_node.items()
            ),
            return_exceptions=True,
        )
        found: dict[TopicPartition, Fetched] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                if not isinstance(answer, (kafka.KafkaError, OSError, TimeoutError)):
                    raise answer
                stale = True
                continue
            for at, fetched in read_fetch(answer):
                if isinstance(fetched.error, _MOVED):
                    stale = True
                else:
                    error = None if fetched.error is None else proxy_error(fetched.error)
                    found[at] = replace(fetched, batches=bytes(fetched.batches), error=error)
        if stale:
            await self._update(client)
            if not found and not client.connected_nodes():
                raise BrokerUnavailable(f"No broker responds at {self._settings.bootstrap_servers}.")
        return found

    async def close(self) -> None:
        self.decompression.close()
        if self._client is not None:
            await self._client.close()

    async def _offsets_once(self, topic: str, times: Mapping[int, int], isolation: Isolation) -> dict[int, int | None]:
        client = await self._connected()
        leaders: dict[TopicPartition, int] = {}
        for partition in times:
            at = TopicPartition(topic, partition)
            node = client.cluster.leader_for_partition(at)
            if node is None or node < 0:
                raise kafka.LeaderNotAvailableError(f"{topic}-{partition}")
            leaders[at] = node
        wanted = {TopicPartition(topic, partition): when for partition, when in times.items()}
        found = await list_offsets(client, wanted, leaders, isolation)
        return {at.partition: offset for at, offset in found.items()}

    async def _before_retry(self, error: Exception, topic: str, deadline: float) -> None:
        """Raises errors that a retry cannot solve, and any error after the deadline."""
        if isinstance(error, kafka.KafkaError) and not error.retriable:
            raise proxy_error(error) from error
        client = await self._connected()
        is_updated = await self._update(client)
        if is_updated and not client.cluster.partitions_for_topic(topic):
            raise TopicNotFound from error  # Deleted since the last metadata update.
        if not is_updated or time.monotonic() >= deadline:
            failed = proxy_error(error)
            if isinstance(error, (kafka.LeaderNotAvailableError, kafka.NotLeaderForPartitionError)):
                failed = LeaderNotFound(f"No leader for the partition: {error}")
            elif isinstance(failed, RetriableError) or isinstance(error, kafka.NodeNotReadyError):
                failed = BrokerUnavailable(f"The brokers do not respond: {str(error) or type(error).__name__}")
            raise failed from error
        await asyncio.sleep(RETRY_SECONDS)

    async def _update(self, client: Any) -> bool:
        """Updates the metadata of all topics."""
        if time.monotonic() - self._updated < METADATA_SECONDS_MIN:
            await asyncio.sleep(METADATA_SECONDS_MIN - (time.monotonic() - self._updated))
        self._updated = time.monotonic()
        return bool(await client.force_metadata_update())

    async def _connected(self) -> Any:
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._client is None:
                options = self._settings.connection
                try:
                    client = await open_client(replace(options, metadata_max_age_ms=METADATA_AGE_MS))
                except Exception as error:
                    raise proxy_error(error) from error
                self._updated = 0.0
                await client.force_metadata_update()
                self._client = client
        return self._client


_MOVED: Final = (kafka.NotLeaderForPartitionError, kafka.LeaderNotAvailableError, kafka.ReplicaNotAvailableError)


def offsets_text(positions: Iterable[tuple[int, int]]) -> str:
    """Returns partitions and next offsets as `0:15,1:20`. Event ids have this format, so that a read can resume."""
    return ",".join(f"{partition}:{offset}" for partition, offset in positions)
