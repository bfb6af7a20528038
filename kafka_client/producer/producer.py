"""Accepts records: selects partitions, checks limits and adds records to the queues of their partitions.

A broker has one in-flight request. Records that arrive meanwhile are batched per partition and sent with the next
request. A single request is therefore not delayed, and concurrent requests share a batch. Callers get tickets. Each
batch has one future. Records have none.

`kafka_client.producer.dispatcher` sends the queues with an idempotent producer (KIP-98).
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from headgate.kafka_client.errors import BufferFull, KafkaClientError, PartitionNotFound, ProducerClosed, RecordTooLarge
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.connection import ProducerConnection
from headgate.kafka_client.producer.dispatcher import Dispatcher
from headgate.kafka_client.producer.options import COMPRESSION_CODECS, ProducerOptions
from headgate.kafka_client.producer.partition_queue import PartitionQueue
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.records import Batch, OutgoingRecord, ProducerIdentity, Ticket
from headgate.kafka_client.time_slicing import chunks

records_at_once_max: Final = 1000
"""Larger requests are processed in time slices. A thousand records take about two milliseconds."""
# Maximum number of queues, a few hundred bytes each. At the limit, idle queues are evicted with their sequence numbers.
partition_queues_max: Final = 20_000


class Producer:
    def __init__(
        self, connection: ConnectionOptions, options: ProducerOptions, link: ProducerConnection | None = None
    ) -> None:
        self._options = options
        self._link = link or ProducerConnection(connection, options)
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._dispatcher = Dispatcher(options, connection.request_timeout_ms, self._link, self._settle)
        self._pending_bytes = 0
        self._turns: dict[str, itertools.count[int]] = {}
        self._closed = False

    @property
    def pending_bytes(self) -> int:
        return self._pending_bytes

    async def open(self) -> None:
        """Connect and request a producer id now instead of with the first batch. Raises KafkaClientError."""
        await self._dispatcher.ensure_identity()

    async def check_topic(self, topic: str) -> None:
        """Raise TopicNotFound if the topic is missing and a produce cannot create it. Does not create the topic."""
        await self._link.check_topic(topic)

    async def partitions(self, topic: str) -> tuple[int, ...]:
        """Return the partitions of a topic. May create a missing topic. Raises TopicNotFound, BrokerUnavailable."""
        return await self._link.partitions(topic)

    def known_partitions(self, topic: str) -> tuple[int, ...] | None:
        return self._link.known_partitions(topic)

    async def place(self, topic: str, records: Sequence[OutgoingRecord], *, is_limited: bool = True) -> list[Ticket]:
        """Add records to batches. If one record cannot be placed, raises before it queues any record.

        `is_limited=False` ignores `pending_bytes_max`. The caller then limits the buffer.
        """
        partitions = self._link.known_partitions(topic)
        if partitions is None:
            # Check first: a record that is too large must not create the topic.
            self.check_sizes(records)
            partitions = await self._link.partitions(topic)
        if len(records) <= records_at_once_max:
            return self.place_now(topic, records, partitions, is_limited=is_limited)
        return await self._place_in_slices(topic, records, partitions, is_limited=is_limited)

    async def _place_in_slices(
        self, topic: str, records: Sequence[OutgoingRecord], partitions: tuple[int, ...], *, is_limited: bool
    ) -> list[Ticket]:
        keyless = self._keyless(topic, partitions)
        total, chosen = 0, list[int]()
        async for _, some in chunks(records):
            size, places = self._choose(topic, some, partitions, keyless)
            total += size
            chosen += places
        if is_limited:
            self._check_room(total)
        now_ms = int(time.time() * 1000)
        tickets: list[Ticket] = []
        async for start, some in chunks(records):
            places = chosen[start : start + len(some)]
            if self._closed:
                refused = self._new_batch(topic, places[0])
                self._settle(refused, ProducerClosed("The producer is closed."))
                tickets += [Ticket(refused, 0, now_ms)] * len(some)
            else:
                tickets += [self._put(topic, place, record, now_ms) for place, record in zip(places, some, strict=True)]
        return tickets

    def place_now(
        self,
        topic: str,
        records: Sequence[OutgoingRecord],
        partitions: tuple[int, ...],
        *,
        is_limited: bool = True,
    ) -> list[Ticket]:
        """Same as `place`, if the partitions are known."""
        if self._closed:
            raise ProducerClosed("The producer is closed.")
        total, chosen = self._choose(topic, records, partitions)
        if is_limited:
            self._check_room(total)
        now_ms = int(time.time() * 1000)
        put = self._put
        return [put(topic, partition, record, now_ms) for partition, record in zip(chosen, records, strict=True)]

    def _choose(
        self,
        topic: str,
        records: Sequence[OutgoingRecord],
        partitions: tuple[int, ...],
        keyless: int | None = None,
    ) -> tuple[int, list[int]]:
        """Return the total size and the partition of each record. Raises if one record cannot be placed."""
        limit = self._options.record_bytes_max
        total = 0
        chosen: list[int] = []
        for record in records:
            size = record.size()
            if size > limit:
                raise self._too_large(size)
            total += size
            if record.partition is not None:
                if record.partition not in partitions:
                    raise PartitionNotFound
                chosen.append(record.partition)
            elif record.key is not None:
                chosen.append(partition_of(record.key, partitions))
            else:
                if keyless is None:
                    keyless = self._keyless(topic, partitions)
                chosen.append(keyless)
        return total, chosen

    def place_one(self, topic: str, record: OutgoingRecord, partitions: tuple[int, ...], now_ms: int) -> Ticket:
        """Same as `place_now` for a single record. This is the hot path of streams."""
        size = record.size()
        if size > self._options.record_bytes_max:
            raise self._too_large(size)
        self._check_room(size)
        if self._closed:
            raise ProducerClosed("The producer is closed.")
        if record.partition is not None:
            if record.partition not in partitions:
                raise PartitionNotFound
            partition = record.partition
        elif record.key is not None:
            partition = partition_of(record.key, partitions)
        else:
            partition = self._keyless(topic, partitions)
        return self._put(topic, partition, record, now_ms)

    def build(self, topic: str, rows: Sequence[tuple[int, Sequence[OutgoingRecord]]]) -> list[list[Ticket]]:
        """Build one keyed batch for each (partition, records). Reserves buffer memory, but does not send.

        Pass every batch to `send_as` or `discard`. Raises before it reserves memory.
        """
        if self._closed:
            raise ProducerClosed("The producer is closed.")
        for _, records in rows:
            self.check_sizes(records)
        self._check_room(sum(record.size() for _, records in rows for record in records))
        now_ms = int(time.time() * 1000)
        built: list[list[Ticket]] = []
        for partition, records in rows:
            batch = self._new_batch(topic, partition)
            batch.is_keyed = True
            tickets: list[Ticket] = []
            for record in records:
                ticket = self._append(batch, record, now_ms)
                if ticket is None:
                    break  # Stop early: many more records may follow the one that does not fit.
                tickets.append(ticket)
            if not tickets or len(tickets) < len(records):
                limit = self._options.batch_bytes_max
                raise RecordTooLarge(
                    f"All records of a partition must fit one batch of {limit} bytes. "
                    f"The records for partition {partition} do not."
                )
            built.append(tickets)
        self._pending_bytes += sum(tickets[0].batch.bytes for tickets in built)
        return built

    def send_as(self, identity: ProducerIdentity, sequence: int, batch: Batch, *, may_be_written: bool) -> None:
        """Queue a keyed batch with a producer id and first sequence number of the caller.

        A broker that already stored a batch with these numbers does not store it again. Set `may_be_written` if an
        earlier attempt of this request, by any worker, may have sent the batch.
        """
        if self._closed:
            self._settle(batch, ProducerClosed("The producer is closed."))
            return
        batch.identity, batch.sequence, batch.in_doubt = identity, sequence, may_be_written
        queue = self._queue(batch.topic, batch.partition)
        queue.waiting.append(batch)
        self._dispatcher.make_ready(queue)

    def discard(self, batches: Sequence[Batch], error: KafkaClientError) -> None:
        """Release unsent batches."""
        for batch in batches:
            self._settle(batch, error)

    def enqueue(self, topic: str, partition: int, builder: Any, count: int) -> Batch:
        """Queue a batch that the caller has filled (`new_builder`)."""
        if self._closed:
            raise ProducerClosed("The producer is closed.")
        batch = self._new_batch(topic, partition, builder)
        batch.count, batch.bytes = count, builder.size()
        self._pending_bytes += batch.bytes
        queue = self._queue(topic, partition)
        queue.gathering = None
        queue.waiting.append(batch)
        self._dispatcher.make_ready(queue)
        return batch

    async def new_identity(self) -> ProducerIdentity:
        """Raises KafkaClientError."""
        return await self._link.new_identity()

    async def close(self) -> None:
        """Deliver the queued batches, up to `close_timeout_ms`, then close the connection."""
        self._closed = True
        await self._dispatcher.close()
        for queue in self._queues.values():
            for batch in queue.waiting:
                self._dispatcher.abandon(batch)
            queue.clear()
        await self._link.close()

    def check_sizes(self, records: Sequence[OutgoingRecord]) -> None:
        """Raises RecordTooLarge."""
        for record in records:
            if (size := record.size()) > self._options.record_bytes_max:
                raise self._too_large(size)

    def _too_large(self, size: int) -> RecordTooLarge:
        limit = self._options.record_bytes_max
        return RecordTooLarge(f"A record of {size} bytes is over the limit of {limit}.")

    def _check_room(self, wanted_bytes: int) -> None:
        if self._pending_bytes and self._pending_bytes + wanted_bytes > self._options.pending_bytes_max:
            raise BufferFull("Too many records wait for the brokers. Try again in a second.")

    def _queue(self, topic: str, partition: int) -> PartitionQueue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            if len(self._queues) >= partition_queues_max:
                self._drop_idle_queues()
            queue = self._queues[topic, partition] = PartitionQueue(topic, partition)
        return queue

    def _drop_idle_queues(self) -> None:
        # A partition without its sequence number restarts at 0. Only a new producer id may do that.
        self._dispatcher.renew_identity()
        self._queues = {key: queue for key, queue in self._queues.items() if not queue.is_idle}
        self._turns.clear()

    def _keyless(self, topic: str, partitions: tuple[int, ...]) -> int:
        """Return a partition with an open batch, or the next partition (round robin)."""
        if len(partitions) == 1:
            return partitions[0]
        for partition in partitions:
            queue = self._queues.get((topic, partition))
            if queue is not None and queue.gathering is not None:
                return partition
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = itertools.count()
        return partitions[next(turn) % len(partitions)]

    def _new_batch(self, topic: str, partition: int, builder: Any = None) -> Batch:
        deadline = time.monotonic() + self._options.delivery_timeout_ms / 1000
        return Batch(topic, partition, builder or new_builder(self._options), deadline)

    def _append(self, batch: Batch, record: OutgoingRecord, now_ms: int) -> Ticket | None:
        index = batch.count
        timestamp_ms = record.timestamp_ms if record.timestamp_ms is not None else now_ms
        headers = record.headers
        added = batch.builder.append(index, timestamp_ms, record.key, record.value, list(headers) if headers else [])
        if added is None:
            return None
        batch.count = index + 1
        batch.bytes += added.size
        return Ticket(batch, index, timestamp_ms)

    def _put(self, topic: str, partition: int, record: OutgoingRecord, now_ms: int) -> Ticket:
        queue = self._queues.get((topic, partition)) or self._queue(topic, partition)
        batch = queue.gathering
        if batch is None:
            batch = self._open_batch(queue)
            self._dispatcher.make_ready(queue)
        before = batch.bytes
        ticket = self._append(batch, record, now_ms)
        if ticket is None:
            batch = self._open_batch(queue)
            before = 0
            ticket = self._append(batch, record, now_ms)
            assert ticket is not None, "a batch takes one record of any size"
        self._pending_bytes += batch.bytes - before
        return ticket

    def _open_batch(self, queue: PartitionQueue) -> Batch:
        batch = queue.gathering = self._new_batch(queue.topic, queue.partition)
        queue.waiting.append(batch)
        return batch

    def _settle(self, batch: Batch, error: KafkaClientError | None = None) -> None:
        if not batch.is_settled:
            self._pending_bytes -= batch.bytes
            batch.settle(error)


def new_builder(options: ProducerOptions) -> Any:
    """Return an empty record batch. Its first record may have any size."""
    make: Any = DefaultRecordBatchBuilder
    codec = COMPRESSION_CODECS[options.compression]
    return make(2, codec, 0, -1, -1, 0, options.batch_bytes_max)
