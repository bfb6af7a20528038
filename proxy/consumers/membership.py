"""Member of a consumer group: an aiokafka consumer that tracks which records were delivered.

v2 instances and group streams use it. Fetched records stay in a buffer until they are delivered. A rebalance or a seek
drops them, because they will be fetched again. aiokafka's automatic commits are disabled.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka import errors as kafka
from aiokafka.structs import OffsetAndMetadata

from headgate.kafka_client.aiokafka_internals import client_of, fetch_committed_offsets
from headgate.kafka_client.consumer import FETCH_EXPANDED_BYTES_MAX, BoundedConsumer, UnreadableConsumerRecord
from headgate.kafka_client.errors import BrokerError, BrokerUnavailable, PartitionNotFound
from headgate.kafka_client.fetch import Isolation
from headgate.proxy.errors import BadRequest, ConsumerInstanceNotFound, IllegalState, ProxyError
from headgate.proxy.kafka_errors import proxy_error
from headgate.proxy.reading.batches import read_chunk, records
from headgate.proxy.reading.cluster import Cluster
from headgate.proxy.reading.payloads import KafkaRecord, UnreadableRecord
from headgate.proxy.settings import ProxySettings

SESSION_TIMEOUT_MS: Final = 30_000
"""Long enough for a worker with thousands of members. Short enough to free the partitions of a crashed worker."""
POLL_RECORDS_MAX: Final = 500
"""Records per poll. Polled and undelivered records use memory twice."""
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
"""Size of one fetch of one member. One worker has thousands of members."""
OPERATION_SECONDS_MAX: Final = 20.0
"""Timeout of commits, seeks and lookups. aiokafka retries without a limit."""

Record = ConsumerRecord[bytes, bytes]


@dataclass(frozen=True, slots=True)
class MemberSettings:
    group: str
    auto_offset_reset: str
    isolation_level: str
    group_instance_id: str | None


class GroupMember:
    """Connects on first use. Calls `on_revoked` before partitions are revoked."""

    def __init__(
        self,
        proxy: ProxySettings,
        cluster: Cluster,
        member: MemberSettings,
        on_revoked: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._proxy = proxy
        self._cluster = cluster
        self._member = member
        self._consumer: Any = None
        self._starting: asyncio.Task[Any] | None = None
        self._closed = False
        self._is_bound = False
        self._buffer: deque[Record] = deque()
        self._generation = 0
        self._listener = _Listener(self, on_revoked)
        self.delivered: dict[TopicPartition, int] = {}
        """The offset after the last delivered record since the assignment, by partition."""

    @property
    def generation(self) -> int:
        """Increases when partitions are revoked. Records of earlier generations may belong to other members."""
        return self._generation

    async def subscribe(self, topics: Iterable[str]) -> None:
        consumer = await self._unbound()
        try:
            consumer.subscribe(list(topics), listener=self._listener)
        except (kafka.KafkaError, TypeError, ValueError) as error:
            raise BadRequest(str(error)) from error
        self._is_bound = True

    async def unsubscribe(self) -> None:
        await self._release()

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        consumer = await self._started()
        for partition in wanted:
            await self._check_exists(consumer, partition)
        consumer = await self._unbound()
        consumer.assign(wanted)
        self._is_bound = True

    def assignment(self) -> list[TopicPartition]:
        if self._consumer is None:
            return []
        return sorted(self._consumer.assignment())

    def deliver(self, record: Record) -> None:
        self.delivered[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def waiting(self) -> deque[Record]:
        """Fetched and undelivered records. Take them from the left and call `deliver`."""
        return self._buffer

    async def fetch(self, seconds: float) -> bool:
        """Waits for records and adds them to `waiting`. Returns whether there were any. Raises ProxyError."""
        consumer = await self._started()
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                found = await consumer.getmany(timeout_ms=int(seconds * 1000), max_records=POLL_RECORDS_MAX)
        except TimeoutError:
            found = {}  # aiokafka waits for an assignment without a timeout.
        except kafka.ConsumerStoppedError as error:
            if self._closed:
                raise ConsumerInstanceNotFound from error
            found = {}  # Another request has changed the subscription.
        except (kafka.NoOffsetForPartitionError, kafka.OffsetOutOfRangeError) as error:
            raise BrokerError(f"{type(error).__name__}: {error}. The consumer has auto.offset.reset=none.") from error
        except (UnicodeDecodeError, kafka.CorruptRecordException):
            # aiokafka requires UTF-8 in header names, but Kafka does not. A malformed record becomes poison.
            found = await self._fetch_leniently(consumer)
        except Exception as error:
            raise proxy_error(error) from error
        for fetched in found.values():
            self._buffer.extend(fetched)
        return bool(found)

    def check_connected(self) -> None:
        """Raises BrokerUnavailable without a connection. An empty response would hide the outage."""
        if self._consumer is not None and not client_of(self._consumer).connected_nodes():
            raise BrokerUnavailable("No broker is available. Retry later to read the records.")

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commits `offsets`, or all delivered records. Raises IllegalState, RetriableError, BrokerUnavailable."""
        if self._consumer is None:
            if offsets:
                raise IllegalState("The consumer has neither a subscription nor an assignment.")
            return
        assigned = self._consumer.assignment()
        if offsets is None:
            offsets = {p: OffsetAndMetadata(o, "") for p, o in self.delivered.items() if p in assigned}
        for partition in offsets:
            if partition not in assigned:
                raise IllegalState(
                    f"Partition {partition.topic}-{partition.partition} is not assigned to the consumer."
                )
        if offsets:
            await self._run(self._consumer.commit(dict(offsets)))

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        consumer = await self._started()
        wanted = list(partitions)
        for partition in wanted:
            await self._check_exists(consumer, partition)
        found = await self._run(fetch_committed_offsets(consumer, wanted))
        return {partition: kept for partition, kept in found.items() if kept.offset >= 0}

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        consumer = await self._assigned([partition])
        consumer.seek(partition, offset)
        self._drop([partition])

    async def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> None:
        consumer = await self._assigned([partition])
        found = await self._run(consumer.offsets_for_times({partition: timestamp_ms}))
        at = found.get(partition)
        if at is None:
            await self.seek_to_end([partition])
        else:
            await self.seek(partition, at.offset)

    async def seek_to_beginning(self, partitions: list[TopicPartition]) -> None:
        consumer = await self._assigned(partitions)
        await self._run(consumer.seek_to_beginning(*partitions))
        self._drop(partitions)

    async def seek_to_end(self, partitions: list[TopicPartition]) -> None:
        consumer = await self._assigned(partitions)
        await self._run(consumer.seek_to_end(*partitions))
        self._drop(partitions)

    async def close(self) -> None:
        self._closed = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        await self._release()

    async def _release(self) -> None:
        consumer, self._consumer, self._is_bound = self._consumer, None, False
        self._clear()
        if consumer is None:
            return
        try:
            async with asyncio.timeout(OPERATION_SECONDS_MAX):
                await consumer.stop()
        except Exception:  # Without a broker, the member cannot leave the group. Its session times out.
            await client_of(consumer).close()

    async def _unbound(self) -> Any:
        """Returns a consumer without a subscription. Replaces a subscribed consumer with a new one.

        Changing the subscription of an aiokafka consumer while it joins is not safe.
        """
        if self._is_bound:
            await self._release()
        return await self._started()

    def revoked(self) -> None:
        self._generation += 1
        self._clear()

    def _clear(self) -> None:
        self._buffer.clear()
        self.delivered.clear()

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        kept = [record for record in self._buffer if TopicPartition(record.topic, record.partition) not in gone]
        self._buffer.clear()
        self._buffer.extend(kept)
        for partition in gone:
            self.delivered.pop(partition, None)

    async def _fetch_leniently(self, consumer: Any) -> dict[TopicPartition, list[Record]]:
        """Fetches batches that aiokafka cannot parse, and parses them with `proxy.reading.batches`."""
        isolation = Isolation[self._member.isolation_level.upper()]
        positions = {at: await self._run(consumer.position(at)) for at in consumer.assignment()}
        found: dict[TopicPartition, list[Record]] = {}
        for at, fetched in (
            await self._cluster.fetch(positions, bytes_max=FETCH_BYTES_MAX, isolation=isolation)
        ).items():
            if fetched.error is not None or at not in consumer.assignment():
                continue
            chunk = await read_chunk(
                self._cluster.decompression, fetched, positions[at], isolation, FETCH_EXPANDED_BYTES_MAX
            )
            if at not in consumer.assignment():
                continue
            found[at] = [_consumer_record(at, each) for each in records(chunk) if each.offset >= chunk.start]
            consumer.seek(at, chunk.next)
        return found

    async def _assigned(self, partitions: Iterable[TopicPartition]) -> Any:
        consumer = await self._started()
        assigned = consumer.assignment()
        for partition in partitions:
            if partition not in assigned:
                raise IllegalState(f"No current assignment for partition {partition.topic}-{partition.partition}")
        return consumer

    async def _check_exists(self, consumer: Any, partition: TopicPartition) -> None:
        """Fetches metadata of all topics, because a request by name may create the topic."""
        client = client_of(consumer)
        known = client.cluster.partitions_for_topic(partition.topic)
        if known is None or partition.partition not in known:
            cluster = await self._run(client.fetch_all_metadata())
            if partition.partition not in (cluster.partitions_for_topic(partition.topic) or ()):
                raise PartitionNotFound(f"Partition {partition.topic}-{partition.partition} not found.")

    async def _run(self, operation: Awaitable[Any]) -> Any:
        started = time.monotonic()
        try:
            async with asyncio.timeout(OPERATION_SECONDS_MAX):
                return await operation
        except kafka.CommitFailedError as error:
            raise IllegalState(f"The group has rebalanced: {error}") from error
        except kafka.IllegalStateError as error:
            raise IllegalState(str(error)) from error
        except TimeoutError as error:
            waited = time.monotonic() - started
            raise BrokerUnavailable(f"The brokers did not respond within {waited:.0f} seconds.") from error
        except ProxyError:
            raise
        except Exception as error:
            raise proxy_error(error) from error

    async def _started(self) -> Any:
        if self._closed:
            raise ConsumerInstanceNotFound
        if self._consumer is not None:
            return self._consumer
        if self._starting is None:
            # Use a separate task, so that the start completes even if the client disconnects.
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._start_done)
        return await asyncio.shield(self._starting)

    def _start_done(self, starting: asyncio.Task[Any]) -> None:
        self._starting = None
        if not starting.cancelled():
            starting.exception()  # Marks the exception as retrieved, because there may be no waiter.

    async def _start(self) -> Any:
        consumer: Any = BoundedConsumer(
            self._cluster.decompression,
            self._proxy.connection,
            group_id=self._member.group,
            group_instance_id=self._member.group_instance_id,
            auto_offset_reset=self._member.auto_offset_reset,
            isolation_level=self._member.isolation_level,
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            # The proxy evicts idle members itself, before Kafka's poll timeout.
            max_poll_interval_ms=2 * self._proxy.consumer_instance_timeout_ms + 60_000,
            fetch_max_bytes=FETCH_BYTES_MAX,
        )
        try:
            await consumer.start()
        except Exception as error:
            await consumer.stop()
            raise proxy_error(error) from error
        if self._closed:
            await consumer.stop()
            raise ConsumerInstanceNotFound
        self._consumer = consumer
        return consumer


def _consumer_record(at: TopicPartition, record: KafkaRecord) -> Record:
    key, value = record.key, record.value
    sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
    headers: Any = tuple(record.headers)
    if isinstance(record, UnreadableRecord):
        return UnreadableConsumerRecord(
            at.topic, at.partition, record.offset, record.timestamp, 0, None, None, None, -1, -1, (), record.unreadable
        )
    return ConsumerRecord(at.topic, at.partition, record.offset, record.timestamp, 0, key, value, None, *sizes, headers)


class _Listener(ConsumerRebalanceListener):
    def __init__(self, member: GroupMember, before: Callable[[], Awaitable[None]] | None) -> None:
        self._member = member
        self._before = before

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if not revoked:
            return  # The first assignment.
        if self._before is not None:
            await self._before()
        self._member.revoked()

    async def on_partitions_assigned(self, assigned: Any) -> None: ...
