"""A connection to the brokers for reading without a group: topics, offsets, and fetches of raw batches.

Built on aiokafka's client rather than on its consumer: a read that belongs to no group needs no assignment, no
background task and no prefetching, so that a client that stops reading costs the brokers nothing.

A broker answers the requests of one connection one after the other. Reads that return at once share a few connections;
those that wait have connections of their own (`Lane`).
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka import errors as kafka
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest

from headgate.kafka_client.connection import open_client
from headgate.kafka_client.decompression import Decompression
from headgate.proxy.errors import (
    BrokerUnavailable,
    KafkaRetriable,
    LeaderNotFound,
    PartitionNotFound,
    ProxyError,
    TopicNotFound,
)
from headgate.proxy.kafka_errors import proxy_error
from headgate.proxy.settings import ProxySettings

EARLIEST: Final = -2
LATEST: Final = -1
METADATA_SECONDS_MIN: Final = 0.1
"""A topic that is asked for and not there is looked up again no sooner: unknown names must not become load."""
METADATA_AGE_MS: Final = 60_000
RETRY_SECONDS: Final = 0.1
QUICK_LANES: Final = 4
"""Connections to a broker that reads without waiting share."""


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """A connection beside the client's own; brokers answer each in order."""

    number: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one partition's fetch brought: whole batches, which may begin before the offset asked for."""

    batches: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    """(producer id, first offset) of transactions that were rolled back."""
    error: ProxyError | None = None
    out_of_range: bool = False
    """The offset is not, or no longer, in the log."""


class Cluster:
    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self.decompression = Decompression(settings.fetch_batch_decompressed_bytes_max)
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
        """Raises TopicNotFound. Asking creates no topic."""
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
        """As far as is known; -1 where nobody is."""
        node = None if self._client is None else self._client.cluster.leader_for_partition(at)
        return -1 if node is None else int(node)

    async def offsets(
        self, topic: str, times: Mapping[int, int], isolation: Isolation = Isolation.READ_UNCOMMITTED
    ) -> dict[int, int | None]:
        """Per partition: EARLIEST, LATEST or a time in milliseconds → its offset; None where no record is that new."""
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
        """One round over the leaders. A partition whose leader is not known, or has moved, is left out: ask again."""
        client = await self._connected()
        by_node: dict[int, dict[str, list[tuple[int, int, int]]]] = {}
        stale = False
        for at, offset in positions.items():
            node = client.cluster.leader_for_partition(at)
            if node is None or node < 0:
                stale = True
                continue
            by_node.setdefault(node, {}).setdefault(at.topic, []).append((at.partition, offset, bytes_max))
        if lane is None:
            self._turn = (self._turn + 1) % QUICK_LANES
            lane = Lane(self._turn)
        answers = await asyncio.gather(
            *(
                client.send(
                    node,
                    FetchRequest(wait_ms, 1, bytes_max, int(isolation), list(topics.items())),
                    group=lane,
                )
                for node, topics in by_node.items()
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
            stale |= _read_fetch(answer, found)
        if stale:
            await self._update(client)
            if not found and not client.connected_nodes():
                raise BrokerUnavailable(f"No broker answers at {self._settings.bootstrap_servers}.")
        return found

    async def close(self) -> None:
        self.decompression.close()
        if self._client is not None:
            await self._client.close()

    async def _offsets_once(self, topic: str, times: Mapping[int, int], isolation: Isolation) -> dict[int, int | None]:
        client = await self._connected()
        by_node: dict[int, list[tuple[int, int]]] = {}
        for partition, at in times.items():
            node = client.cluster.leader_for_partition(TopicPartition(topic, partition))
            if node is None or node < 0:
                raise kafka.LeaderNotAvailableError(f"{topic}-{partition}")
            by_node.setdefault(node, []).append((partition, at))
        found: dict[int, int | None] = {}
        for node, wanted in by_node.items():
            answer = await client.send(node, OffsetRequest(-1, int(isolation), [(topic, wanted)]))
            for _, rows in answer.topics:
                for partition, code, *rest in rows:
                    error = kafka.for_code(code)
                    if error is not kafka.NoError:
                        raise error(f"{topic}-{partition}")
                    offset = rest[-1]
                    found[partition] = None if offset < 0 else offset
        return found

    async def _before_retry(self, error: Exception, topic: str, deadline: float) -> None:
        """Raises what cannot pass, or has not passed in time."""
        if isinstance(error, kafka.KafkaError) and not error.retriable:
            raise proxy_error(error) from error
        client = await self._connected()
        is_updated = await self._update(client)
        if is_updated and not client.cluster.partitions_for_topic(topic):
            raise TopicNotFound from error  # deleted since we last looked
        if not is_updated or time.monotonic() >= deadline:
            failed = proxy_error(error)
            if isinstance(error, (kafka.LeaderNotAvailableError, kafka.NotLeaderForPartitionError)):
                failed = LeaderNotFound(f"No leader for the partition: {error}")
            elif isinstance(failed, KafkaRetriable) or isinstance(error, kafka.NodeNotReadyError):
                failed = BrokerUnavailable(f"The brokers do not answer: {str(error) or type(error).__name__}")
            raise failed from error
        await asyncio.sleep(RETRY_SECONDS)

    async def _update(self, client: Any) -> bool:
        """Look at the cluster anew; all topics, since asking for one by name may create it."""
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


def _read_fetch(answer: Any, found: dict[TopicPartition, Fetched]) -> bool:
    """Whether any partition has moved."""
    stale = False
    for topic, rows in answer.topics:
        for partition, code, high_watermark, *rest in rows:
            at = TopicPartition(topic, partition)
            error = kafka.for_code(code)
            if issubclass(error, _MOVED):
                stale = True
            elif error is not kafka.NoError:
                failed = proxy_error(error(f"{topic}-{partition}"))
                found[at] = Fetched(b"", high_watermark, -1, -1, (), failed, error is kafka.OffsetOutOfRangeError)
            else:
                version = answer.API_VERSION
                stable = rest[0] if version >= 4 else high_watermark
                start = rest[1] if version >= 5 else 0
                aborted = (rest[2] if version >= 5 else rest[1] if version == 4 else None) or ()
                found[at] = Fetched(
                    bytes(rest[-1] or b""), high_watermark, stable, start, tuple((a[0], a[1]) for a in aborted)
                )
    return stale


def offsets_text(positions: Iterable[tuple[int, int]]) -> str:
    """`0:15,1:20`: partition and next offset. The id of events, and what a read resumes from."""
    return ",".join(f"{partition}:{offset}" for partition, offset in positions)
