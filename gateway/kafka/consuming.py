"""Reads records by assignment from given offsets, or as a member of a consumer group."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headgate.gateway.records.record import Record
from headgate.kafka_client.admin.offsets import EARLIEST, LATEST, Place, bounds, list_offsets
from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.request_client import RequestClient

# How long one poll waits for records before the end offsets are checked again.
poll_ms = 250
poll_records_max = 500
# A crash repeats at most the records of this time.
commit_interval_seconds = 5.0
position_timeout_seconds = 1.0


@dataclass(frozen=True, slots=True)
class Start:
    """Start position. Exactly one field is set. `last` is a number of records before the end."""

    beginning: bool = False
    end: bool = False
    offset: int | None = None
    last: int | None = None
    timestamp_ms: int | None = None


async def start_offsets(cluster: RequestClient, places: Iterable[Place], start: Start) -> dict[Place, int]:
    """Returns the start offset of each partition, clamped to the partition."""
    wanted = list(places)
    if start.beginning:
        return await list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    if start.end:
        return await list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    limits = await bounds(cluster, wanted)
    if start.timestamp_ms is not None:
        found = await list_offsets(cluster, dict.fromkeys(wanted, start.timestamp_ms))
        return {place: limits[place][1] if found[place] < 0 else found[place] for place in wanted}
    if start.last is not None:
        return {place: max(limits[place][0], limits[place][1] - start.last) for place in wanted}
    assert start.offset is not None
    return {place: min(max(limits[place][0], start.offset), limits[place][1]) for place in wanted}


class Reader:
    """Polls the consumer of `assigned` or `joined`."""

    def __init__(self, consumer: Any, ready: asyncio.Event, *, commits: bool) -> None:
        self._consumer = consumer
        self._ready = ready
        self._commits = commits
        self._processed: dict[Any, int] = {}
        """Offsets to commit."""
        self._unprocessed: set[Any] = set()
        """Partitions with records that are returned and not processed."""
        self._commit_at = time.monotonic() + commit_interval_seconds
        self._errors: Any = import_module("aiokafka.errors")
        self._structs: Any = import_module("aiokafka.structs")

    async def poll(self, records_max: int | None) -> list[Record]:
        """Returns the next records, in order per partition. Empty after `poll_ms`. Raises KafkaClientError."""
        limit = poll_records_max if records_max is None else min(records_max, poll_records_max)
        try:
            batches = await self._consumer.getmany(timeout_ms=poll_ms, max_records=limit)
        except self._errors.KafkaError as error:
            raise client_error(error) from error
        self._unprocessed = set(batches)
        return [_record(each) for batch in batches.values() for each in batch]

    def processed(self, records: Iterable[Record], *, all_of_poll: bool) -> None:
        """These records are on stdout or in a dead-letter topic: the group need not read them again."""
        for record in records:
            self._processed[self._structs.TopicPartition(record.topic, record.partition)] = record.offset + 1
        if all_of_poll:
            self._unprocessed.clear()

    async def commit(self, *, now: bool = False) -> None:
        """Commit processed records, at most once per `commit_interval_seconds`. Raises KafkaClientError."""
        if not self._commits or not (now or time.monotonic() >= self._commit_at):
            return
        self._commit_at = time.monotonic() + commit_interval_seconds
        try:
            if offsets := await self._offsets():
                await self._consumer.commit(offsets)
        except (self._errors.CommitFailedError, self._errors.IllegalStateError):
            pass  # The group has rebalanced. The new owner of the partition reads the records again.
        except self._errors.KafkaError as error:
            raise client_error(error) from error

    async def revoked(self) -> None:
        """Commit before a rebalance. The next owner may commit higher offsets, so forget ours."""
        await self.commit(now=True)
        self._processed.clear()

    async def _offsets(self) -> dict[Any, int]:
        """Offsets of all assigned partitions. For a partition without records, the start offset."""
        offsets: dict[Any, int] = {}
        for place in self._consumer.assignment():
            if place in self._processed:
                offsets[place] = self._processed[place]
            elif place not in self._unprocessed:
                try:
                    async with asyncio.timeout(position_timeout_seconds):
                        offsets[place] = await self._consumer.position(place)
                except TimeoutError:
                    continue  # The partition has no start offset yet.
        return offsets

    async def reached(self, ends: Mapping[Place, int]) -> bool:
        """Returns whether all assigned partitions are read up to `ends`."""
        if not self._ready.is_set():
            return False
        for each in self._consumer.assignment():
            end = ends.get(Place(each.topic, each.partition), 0)
            if await self._consumer.position(each) < end:
                return False
        return True


@asynccontextmanager
async def assigned(
    connection: ConnectionOptions, offsets: Mapping[Place, int], *, committed: bool
) -> AsyncIterator[Reader]:
    """Opens a consumer without a group that starts at these offsets."""
    structs: Any = import_module("aiokafka.structs")
    ready = asyncio.Event()
    ready.set()
    async with _started(connection, ready, committed=committed, commits=False) as (reader, consumer):
        places = {structs.TopicPartition(place.topic, place.partition): offset for place, offset in offsets.items()}
        consumer.assign(list(places))
        for place, offset in places.items():
            consumer.seek(place, offset)
        yield reader


@asynccontextmanager
async def joined(
    connection: ConnectionOptions, group: str, topic: str, *, from_beginning: bool, committed: bool
) -> AsyncIterator[Reader]:
    """Joins a group. Commits processed records periodically, before a rebalance and when it leaves."""
    aiokafka: Any = import_module("aiokafka")
    ready = asyncio.Event()
    readers: list[Reader] = []

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no type hints
        async def on_partitions_revoked(self, revoked: object) -> None:
            ready.clear()
            for reader in readers:
                await reader.revoked()

        async def on_partitions_assigned(self, assigned: object) -> None:
            ready.set()

    reset = "earliest" if from_beginning else "latest"
    options = {"group_id": group, "enable_auto_commit": False, "auto_offset_reset": reset}
    async with _started(connection, ready, committed=committed, commits=True, **options) as (reader, consumer):
        readers.append(reader)
        consumer.subscribe([topic], listener=Listener())
        try:
            yield reader
        finally:
            await reader.commit(now=True)


@asynccontextmanager
async def _started(
    connection: ConnectionOptions, ready: asyncio.Event, *, committed: bool, commits: bool, **options: Any
) -> AsyncIterator[tuple[Reader, Any]]:
    bounded, errors = import_module("headgate.kafka_client.consumer"), import_module("aiokafka.errors")
    decompression = Decompression()
    consumer: Any = bounded.BoundedConsumer(
        decompression,
        connection,
        isolation_level="read_committed" if committed else "read_uncommitted",
        **options,
    )
    try:
        await consumer.start()
    except errors.KafkaError as error:
        await consumer.stop()
        raise client_error(error) from error
    try:
        yield Reader(consumer, ready, commits=commits), consumer
    finally:
        await consumer.stop()
        decompression.close()


def _record(message: Any) -> Record:
    unreadable = getattr(message, "unreadable", None)
    return Record(
        message.topic,
        message.partition,
        message.offset,
        message.timestamp,
        "append" if message.timestamp_type == 1 else "create",
        message.key,
        message.value,
        tuple((name, value) for name, value in message.headers),
        None if unreadable is None else unreadable.description,
    )
