"""Topics, offsets and fetches of record batches, for the driver and the tasks.

Retries temporary errors with backoff, such as a broker restart or a leader election. Reading never creates a topic. All
tasks of a process share one `Cluster`, which runs on the event loop of the process.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from aiokafka import errors as kafka
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

from headgate.kafka_client.aiokafka_internals import BrokerConnection, connect_timeout
from headgate.kafka_client.connection import (
    CONNECT_MS_MAX,
    RETRY_SECONDS,
    RETRY_SECONDS_MAX,
    advertised_addresses,
    close_client,
    open_client,
    open_fetch_connection,
)
from headgate.kafka_client.diagnosis import REJECTED_CREDENTIALS, diagnose
from headgate.kafka_client.errors import KafkaClientError
from headgate.kafka_client.fetch import Fetched, Isolation, fetch_request, list_offsets, read_fetch
from headgate.kafka_client.metadata import metadata_request, read_metadata
from headgate.kafka_client.options import ConnectionOptions
from headgate.spark_udfs.source.errors import (
    BrokerUnreachable,
    NotAuthorized,
    SourceError,
    TopicMissing,
    source_error,
)
from headgate.spark_udfs.source.offsets import Offsets, TopicIds
from headgate.spark_udfs.source.receive_buffer import Block
from headgate.spark_udfs.source.topics import Selection

FIRST_CONNECTION_SECONDS_MAX = 3.0
"""How long to retry brokers that never responded. A wrong address must not look like a slow job."""
WORKER_CONNECTION_SECONDS_MAX = 20.0
"""The same limit in a worker. The driver has just used these brokers, so they are probably restarting."""
UNKNOWN_TOPIC_SECONDS_MAX = 1.0
"""How long to retry an unknown topic. Brokers learn about a new topic at different times."""
UNKNOWN_TOPIC_PAUSE_SECONDS = 0.25

Result = TypeVar("Result")

_NOT_ALLOWED = (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError)


class Cluster:
    def __init__(self, options: ConnectionOptions, first_connection_seconds_max: float | None = None) -> None:
        self._options = options
        self._first_connection_seconds_max = first_connection_seconds_max
        self._client: Any = None
        """A `MetadataClient`, which has no type hints."""
        self._fetching: dict[int, BrokerConnection] = {}
        """Connections by node id."""
        self._opening = asyncio.Lock()
        self._advertised: list[str] = []
        """The addresses of the brokers in the metadata."""
        self._has_answered = False
        """True after a broker has responded at its advertised address."""
        self._topic_ids: TopicIds = {}

    async def partitions(self, selection: Selection, *, may_miss: bool = False) -> list[TopicPartition]:
        """Raises `TopicMissing` unless `may_miss`."""
        topics = None if selection.names is None else list(selection.names)
        deadline = time.monotonic() + UNKNOWN_TOPIC_SECONDS_MAX
        while True:
            known = await self._retried(lambda: self._partitions_once(topics), "the list of topics")
            try:
                return selection.chosen(known, may_miss=may_miss)
            except TopicMissing:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(UNKNOWN_TOPIC_PAUSE_SECONDS)

    def topic_ids(self, places: Iterable[TopicPartition]) -> TopicIds:
        """Returns the topic ids in the last metadata (KIP-516). Brokers before Kafka 2.8 have no topic ids."""
        return {at.topic: self._topic_ids[at.topic] for at in places if at.topic in self._topic_ids}

    async def offsets(
        self, times: Mapping[TopicPartition, int], isolation: Isolation
    ) -> dict[TopicPartition, int | None]:
        """Returns the offset for EARLIEST, LATEST or a timestamp in milliseconds. None if all records are older."""
        if not times:
            return {}
        return await self._retried(lambda: self._offsets_once(times, isolation), "offsets")

    async def edges(self, places: Iterable[TopicPartition], where: int, isolation: Isolation) -> Offsets:
        """Returns the first offset (EARLIEST) or the next offset (LATEST) of each partition."""
        found = await self.offsets(dict.fromkeys(places, where), isolation)
        return {at: offset or 0 for at, offset in found.items()}

    async def fetch(
        self, at: TopicPartition, offset: int, *, block: Block, bytes_max: int, wait_ms: int, isolation: Isolation
    ) -> Fetched:
        """Returns the batches from an offset on, as views of the block. Empty if no record arrives within `wait_ms`."""
        request = fetch_request({at: offset}, bytes_max=bytes_max, wait_ms=wait_ms, isolation=isolation)
        what = f"records of {at.topic}-{at.partition}"
        return await self._retried(lambda: self._fetch_once(at, request, block), what)

    async def close(self) -> None:
        for connection in self._fetching.values():
            connection.end()
        self._fetching.clear()
        client, self._client = self._client, None
        if client is not None:
            await close_client(client)

    async def _partitions_once(self, topics: list[str] | None) -> dict[str, set[int]]:
        client = await self._connected()
        await self._update(client, topics)
        unauthorized = client.cluster.unauthorized_topics & set(topics or ())
        if unauthorized:
            raise kafka.TopicAuthorizationFailedError(", ".join(sorted(unauthorized)))
        found = client.cluster.topics(exclude_internal_topics=topics is None)
        return {topic: client.cluster.partitions_for_topic(topic) for topic in found}

    async def _offsets_once(
        self, times: Mapping[TopicPartition, int], isolation: Isolation
    ) -> dict[TopicPartition, int | None]:
        client = await self._connected()
        leaders = {at: await self._leader(client, at) for at in times}
        return await list_offsets(client, times, leaders, isolation)

    async def _fetch_once(self, at: TopicPartition, request: FetchRequest, block: Block) -> Fetched:
        client = await self._connected()
        connection = await self._fetching_from(client, await self._leader(client, at))
        try:
            answer = await connection.fetch(request, block)
        except (Exception, asyncio.CancelledError) as error:
            block.leave()
            if isinstance(error, TimeoutError):
                raise kafka.RequestTimedOutError from error
            raise
        if answer.API_VERSION >= 7:
            _check(answer.error_code, f"{at.topic}-{at.partition}")
        for _, fetched in read_fetch(answer):
            if fetched.error is not None and not fetched.is_out_of_range:
                raise fetched.error
            return fetched
        raise kafka.KafkaConnectionError(f"the response does not contain {at.topic}-{at.partition}")

    async def _fetching_from(self, client: Any, node: int) -> BrokerConnection:
        async with self._opening:
            connection = self._fetching.get(node)
            if connection is None or not connection.is_open:
                broker = client.cluster.broker_metadata(node)
                if broker is None:
                    raise kafka.StaleMetadata(f"the metadata does not contain broker {node}")
                try:
                    connection = await open_fetch_connection(broker.host, broker.port, self._options)
                except (kafka.KafkaError, OSError) as error:
                    raise kafka.NodeNotReadyError(f"{broker.host}:{broker.port}: {error}") from error
                self._fetching[node] = connection
            return connection

    async def _leader(self, client: Any, at: TopicPartition) -> int:
        node = client.cluster.leader_for_partition(at)
        if node is None or node < 0:
            await self._update(client, [at.topic])
            node = client.cluster.leader_for_partition(at)
        if node is None:
            raise kafka.UnknownTopicOrPartitionError(f"{at.topic}-{at.partition}")
        if node < 0:
            raise kafka.LeaderNotAvailableError(f"{at.topic}-{at.partition}")
        return int(node)

    async def _update(self, client: Any, topics: list[str] | None) -> None:
        """Updates the metadata and the topic ids."""
        nodes = [broker.nodeId for broker in client.cluster.brokers()]
        error: Exception = kafka.KafkaConnectionError("no broker is known")
        for node in nodes:
            try:
                with contextlib.nullcontext() if self._has_answered else connect_timeout(client, CONNECT_MS_MAX):
                    answer = await client.send(node, metadata_request(topics))
            except (kafka.KafkaError, OSError) as failed:
                error = failed
                continue
            known, ids = read_metadata(answer)
            client.cluster.update_metadata(known)
            asked = self._topic_ids.keys() if topics is None else set(topics)
            self._topic_ids = {topic: id_ for topic, id_ in self._topic_ids.items() if topic not in asked} | ids
            self._advertised = advertised_addresses(client)
            self._has_answered = True
            return
        raise error

    async def _retried(self, once: Callable[[], Awaitable[Result]], what: str) -> Result:
        """Retries temporary errors with backoff. Raises a `SourceError`."""
        began = time.monotonic()
        pause = RETRY_SECONDS
        while True:
            try:
                return await once()
            except KafkaClientError as error:
                raise source_error(error) from error
            except (kafka.KafkaError, OSError) as error:
                waited = time.monotonic() - began
                if not self._may_pass(error, waited):
                    raise await self._explained(error, what, waited) from error
                # Leaders have moved, or brokers have new addresses: re-bootstrap.
                await self.close()
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)

    def _may_pass(self, error: Exception, waited: float) -> bool:
        if isinstance(error, (*REJECTED_CREDENTIALS, *_NOT_ALLOWED)):
            return False
        if isinstance(error, kafka.UnknownTopicOrPartitionError):
            return waited < UNKNOWN_TOPIC_SECONDS_MAX
        if isinstance(error, kafka.KafkaError) and not error.retriable and not _is_connection(error):
            return False
        return waited < (self._patience() if _is_connection(error) else self._options.api_timeout_ms / 1000)

    async def _explained(self, error: Exception, what: str, waited: float) -> SourceError:
        if isinstance(error, _NOT_ALLOWED):
            return NotAuthorized(f"The ACLs of {self._options.address} deny this user access to {error}.")
        if isinstance(error, kafka.UnknownTopicOrPartitionError):
            return TopicMissing(f"{error} does not exist in the cluster at {self._options.address}.")
        if _is_connection(error) or isinstance(error, REJECTED_CREDENTIALS):
            found = source_error(await diagnose(self._options, self._advertised, error))
            if isinstance(found, BrokerUnreachable):
                return BrokerUnreachable(
                    f"{found} Requested were {what}; the last attempt was after {waited:.0f} s "
                    "(kafka.default.api.timeout.ms)."
                )
            return found
        return source_error(error)

    def _patience(self) -> float:
        """Returns how long to retry connecting, in seconds."""
        longest = self._options.api_timeout_ms / 1000
        if self._has_answered:
            return longest
        first = self._first_connection_seconds_max
        return FIRST_CONNECTION_SECONDS_MAX if first is None else min(first, longest)

    async def _connected(self) -> Any:
        if self._client is not None:
            return self._client
        async with self._opening:
            if self._client is None:
                self._client = await open_client(self._options, self._patience())
                self._advertised = advertised_addresses(self._client)
        return self._client


def _is_connection(error: Exception) -> bool:
    kinds = (kafka.KafkaConnectionError, kafka.NodeNotReadyError, kafka.RequestTimedOutError, kafka.StaleMetadata)
    return isinstance(error, (*kinds, OSError))


def _check(code: int, what: str) -> None:
    error = kafka.for_code(code)
    if error is not kafka.NoError:
        raise error(what)
