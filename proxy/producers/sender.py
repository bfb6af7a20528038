"""Records to the brokers: idempotent, acks=all, with batches that grow only while the broker is busy.

A partition has one batch on the way. Records that arrive meanwhile gather in the next one, which leaves the moment the
answer is there: a lone request waits for nothing, and a hundred concurrent ones share a batch. Who sent records gets
one future per batch it is part of, not one per record.
"""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner

from proxy.errors import BrokerUnavailable, InvalidPayload, PartitionNotFound, TooManyRequests, TopicNotFound
from proxy.kafka.faults import proxy_error
from proxy.settings import ProxySettings

Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] = ()


@dataclass(frozen=True, slots=True)
class Delivered:
    """Where a record went."""

    partition: int
    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Ticket:
    """A record's place in a batch under way. `batch` has the base offset, or raises a ProxyError."""

    partition: int
    index: int
    batch: "asyncio.Future[tuple[int, int | None]]"
    timestamp_ms: int | None

    async def delivered(self) -> Delivered:
        base_offset, broker_time_ms = await self.batch
        return Delivered(self.partition, base_offset + self.index, broker_time_ms or self.timestamp_ms)


class _Lane:
    """One partition: the batch that gathers, and whether another is on the way."""

    __slots__ = ("builder", "busy", "bytes", "count", "future", "waiting")

    def __init__(self) -> None:
        self.builder: Any = None
        self.future: asyncio.Future[tuple[int, int | None]] | None = None
        self.count = 0
        self.bytes = 0
        self.busy = False
        self.waiting: list[tuple[Any, asyncio.Future[tuple[int, int | None]], int]] = []
        """Full batches that leave before the one that gathers: (batch, future, bytes)."""


class Sender:
    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._producer: Any = None
        """An AIOKafkaProducer, which has no types."""
        self._starting: asyncio.Lock = asyncio.Lock()
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._pending_bytes = 0
        self._partitioner = DefaultPartitioner()
        self._round_robin: dict[str, itertools.count[int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic. Raises TopicNotFound, BrokerUnavailable."""
        producer = await self._started()
        try:
            found = await producer.partitions_for(topic)
        except Exception as error:
            raise proxy_error(error) from error
        if not found:
            raise TopicNotFound
        return sorted(found)

    async def place(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Ticket]:
        """Put records into batches. Raises for the whole call when one of them cannot be placed; none has gone then."""
        partitions = await self.partitions(topic)
        chosen = [self._choose(topic, record, partitions) for record in records]
        size = sum(_size(record) for record in records)
        if self._pending_bytes and self._pending_bytes + size > self._settings.producer_pending_bytes_max:
            raise TooManyRequests("Too many records wait for the brokers; try again in a second.")
        limit = self._settings.producer_batch_bytes_max
        for record in records:
            if _size(record) > limit:
                raise InvalidPayload(f"A record of {_size(record)} bytes is over the limit of {limit}.")
        return [self._put(topic, partition, record) for partition, record in zip(chosen, records, strict=True)]

    async def close(self) -> None:
        """Deliver what is under way, then let go of the connection."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.produce_timeout_ms / 1000)
        if self._producer is not None:
            await self._producer.stop()

    def _choose(self, topic: str, record: OutgoingRecord, partitions: list[int]) -> int:
        if record.partition is not None:
            if record.partition not in partitions:
                raise PartitionNotFound
            return record.partition
        if record.key is not None:
            chosen: int = self._partitioner(record.key, partitions, partitions)
            return chosen
        # Keyless records go where a batch already gathers, else on to the next partition.
        for partition in partitions:
            lane = self._lanes.get((topic, partition))
            if lane is not None and lane.builder is not None:
                return partition
        turn = self._round_robin.setdefault(topic, itertools.count())
        return partitions[next(turn) % len(partitions)]

    def _put(self, topic: str, partition: int, record: OutgoingRecord) -> Ticket:
        lane = self._lanes.get((topic, partition))
        if lane is None:
            lane = self._lanes[topic, partition] = _Lane()
        for _ in range(2):
            if lane.builder is None:
                assert self._producer is not None
                lane.builder = self._producer.create_batch()
                lane.future = asyncio.get_running_loop().create_future()
                lane.count = lane.bytes = 0
            added = lane.builder.append(
                key=record.key, value=record.value, timestamp=record.timestamp_ms, headers=list(record.headers)
            )
            if added is not None:
                break
            self._seal(lane)
        assert lane.future is not None
        ticket = Ticket(partition, lane.count, lane.future, added.timestamp if added is not None else None)
        lane.count += 1
        size = _size(record)
        lane.bytes += size
        self._pending_bytes += size
        if not lane.busy:
            lane.busy = True
            task = asyncio.get_running_loop().create_task(self._drive(topic, partition, lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return ticket

    @staticmethod
    def _seal(lane: _Lane) -> None:
        assert lane.future is not None
        lane.waiting.append((lane.builder, lane.future, lane.bytes))
        lane.builder = lane.future = None

    async def _drive(self, topic: str, partition: int, lane: _Lane) -> None:
        """Send one batch after the other until none is left."""
        while lane.waiting or lane.builder is not None:
            if not lane.waiting:
                self._seal(lane)
            batch, future, size = lane.waiting.pop(0)
            try:
                result = await self._send(batch, topic, partition)
            except Exception as error:
                if not future.done():
                    future.set_exception(proxy_error(error))
                    future.exception()  # whoever asked may have gone; that is no fault to report
            else:
                if not future.done():
                    future.set_result(result)
            finally:
                self._pending_bytes -= size
        lane.busy = False

    async def _send(self, batch: Any, topic: str, partition: int) -> tuple[int, int | None]:
        assert self._producer is not None
        timeout = self._settings.produce_timeout_ms / 1000
        async with asyncio.timeout(timeout):
            delivery = await self._producer.send_batch(batch, topic, partition=partition)
            metadata = await asyncio.shield(delivery)
        # 0 is CreateTime: the record's own timestamp stands.
        return metadata.offset, metadata.timestamp if metadata.timestamp_type == 1 else None

    async def _started(self) -> Any:
        if self._producer is not None:
            return self._producer
        async with self._starting:
            if self._producer is None:
                make: Any = AIOKafkaProducer
                producer = make(
                    bootstrap_servers=self._settings.bootstrap_servers,
                    acks="all",
                    enable_idempotence=True,
                    linger_ms=0,
                    max_batch_size=self._settings.producer_batch_bytes_max,
                    request_timeout_ms=self._settings.kafka_request_timeout_ms,
                )
                try:
                    await producer.start()
                except Exception as error:
                    await producer.stop()
                    raise BrokerUnavailable(
                        f"No broker answers at {self._settings.bootstrap_servers}: {error}. Is it running?"
                    ) from error
                self._producer = producer
        return self._producer


def _size(record: OutgoingRecord) -> int:
    return len(record.key or b"") + len(record.value or b"") + sum(len(n) + len(v) for n, v in record.headers) + 32
