"""Records to the brokers: idempotent, acks=all, with batches that grow only while the broker is busy.

A broker has one request on the way. Records that arrive meanwhile gather, a batch for each partition, and leave the
moment the answer is there: a lone request waits for nothing, and a hundred concurrent ones share a batch. Who sent
records gets tickets; there is one future for a batch, none for a record.

Retries follow KIP-98: a batch keeps its producer id and sequence until a broker has answered for it, so that it is
written once. A batch that is given up in doubt takes the producer id with it, and what follows starts under a new one.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import errors as kafka
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from proxy.errors import (
    BrokerUnavailable,
    InvalidPayload,
    PartitionNotFound,
    ProxyError,
    ShuttingDown,
    TooManyRequests,
    TopicNotFound,
)
from proxy.kafka.faults import proxy_error
from proxy.producers.lanes import Lane, partition_of
from proxy.producers.link import KafkaLink, Placed, refusal
from proxy.producers.records import Batch, OutgoingRecord, ProducerIdentity, Ticket
from proxy.settings import ProxySettings

retry_pause_seconds: Final = 0.05
retry_pause_max_seconds: Final = 1.0
# Partitions may take long to move; a topic that is gone is gone after a few looks.
unknown_topic_attempts: Final = 4
# Under a new producer id a batch is refused again only by a broker that is out of its mind.
identities_max: Final = 3
# Below the brokers' socket.request.max.bytes of 100 MiB.
request_bytes_max: Final = 32 * 1024 * 1024

# The broker has forgotten the producer, or counts other sequences: nothing of the batch was written.
_IDENTITY_LOST: Final = (
    kafka.OutOfOrderSequenceNumber,
    kafka.UnknownProducerId,
    kafka.InvalidProducerEpoch,
    kafka.InvalidProducerIdMapping,
    kafka.ProducerFenced,
)
_AFTER_APPEND: Final = (kafka.RequestTimedOutError, kafka.NotEnoughReplicasAfterAppendError)


class Sender:
    def __init__(self, settings: ProxySettings, link: KafkaLink | None = None) -> None:
        self._settings = settings
        self._link = link or KafkaLink(settings)
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._ready: dict[Lane, None] = {}
        self._busy_nodes: set[int] = set()
        self._identity: ProducerIdentity | None = None
        self._flush_soon = False
        self._pending_bytes = 0
        self._turns: dict[str, itertools.count[int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewing = asyncio.Lock()
        self._closed = False

    @property
    def pending_bytes(self) -> int:
        return self._pending_bytes

    async def partitions(self, topic: str) -> tuple[int, ...]:
        """The partitions of a topic. Raises TopicNotFound, BrokerUnavailable."""
        return await self._link.partitions(topic)

    def known_partitions(self, topic: str) -> tuple[int, ...] | None:
        return self._link.known_partitions(topic)

    async def place(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Ticket]:
        """Put records into batches. Raises for the whole call when one of them cannot be placed; none has gone then."""
        partitions = self._link.known_partitions(topic) or await self._link.partitions(topic)
        return self.place_now(topic, records, partitions)

    def place_now(self, topic: str, records: Sequence[OutgoingRecord], partitions: tuple[int, ...]) -> list[Ticket]:
        """As `place`, for whoever knows the partitions already."""
        if self._closed:
            raise ShuttingDown("The proxy is shutting down.")
        limit = self._settings.producer_batch_bytes_max
        total = 0
        keyless: int | None = None
        chosen: list[int] = []
        for record in records:
            size = record.size()
            if size > limit:
                raise InvalidPayload(f"A record of {size} bytes is over the limit of {limit}.")
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
        if self._pending_bytes and self._pending_bytes + total > self._settings.producer_pending_bytes_max:
            raise TooManyRequests("Too many records wait for the brokers; try again in a second.")
        now_ms = int(time.time() * 1000)
        put = self._put
        return [put(topic, partition, record, now_ms) for partition, record in zip(chosen, records, strict=True)]

    def place_one(self, topic: str, record: OutgoingRecord, partitions: tuple[int, ...], now_ms: int) -> Ticket:
        """As `place_now`, for a record that comes alone: the path of streams, without the detours."""
        size = record.size()
        if size > self._settings.producer_batch_bytes_max:
            limit = self._settings.producer_batch_bytes_max
            raise InvalidPayload(f"A record of {size} bytes is over the limit of {limit}.")
        if self._pending_bytes and self._pending_bytes + size > self._settings.producer_pending_bytes_max:
            raise TooManyRequests("Too many records wait for the brokers; try again in a second.")
        if self._closed:
            raise ShuttingDown("The proxy is shutting down.")
        if record.partition is not None:
            if record.partition not in partitions:
                raise PartitionNotFound
            partition = record.partition
        elif record.key is not None:
            partition = partition_of(record.key, partitions)
        else:
            partition = self._keyless(topic, partitions)
        return self._put(topic, partition, record, now_ms)

    async def place_as(
        self,
        identity: ProducerIdentity,
        topic: str,
        rows: Sequence[tuple[int, int, Sequence[OutgoingRecord]]],
    ) -> list[list[Ticket]]:
        """Rows of (partition, first sequence, records), each one batch, under an identity that the caller keeps.

        Placed again with the same numbers, what a broker already has is not written again. Raises ProxyError.
        """
        await self._link.partitions(topic)
        now_ms = int(time.time() * 1000)
        placed: list[list[Ticket]] = []
        for partition, sequence, records in rows:
            lane = Lane(topic, partition)
            lane.identity, lane.sequence, lane.is_fixed = identity, sequence, True
            batch = lane.gathering = self._new_batch(topic, partition)
            tickets = [self._append(batch, record, now_ms) for record in records]
            if None in tickets:
                raise InvalidPayload("With an Idempotency-Key, the records of a partition must fit one batch.")
            placed.append([ticket for ticket in tickets if ticket is not None])
            self._make_ready(lane)
        return placed

    async def new_identity(self) -> ProducerIdentity:
        return await self._link.new_identity()

    async def close(self) -> None:
        """Deliver what is under way, then let go of the connection."""
        self._closed = True
        deadline = time.monotonic() + self._settings.shutdown_graceful_ms / 1000
        while (self._tasks or self._ready) and time.monotonic() < deadline:
            await asyncio.wait(self._tasks or {asyncio.ensure_future(asyncio.sleep(0.01))}, timeout=0.2)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for lane in [*self._lanes.values(), *self._ready]:
            for batch in lane.batches():
                self._settle(batch, ShuttingDown("The proxy shut down before the brokers had answered."))
            lane.clear()
        await self._link.close()

    def _keyless(self, topic: str, partitions: tuple[int, ...]) -> int:
        """Where a batch already gathers, else the next partition in turn."""
        if len(partitions) == 1:
            return partitions[0]
        for partition in partitions:
            lane = self._lanes.get((topic, partition))
            if lane is not None and lane.gathering is not None:
                return partition
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = itertools.count()
        return partitions[next(turn) % len(partitions)]

    def _new_batch(self, topic: str, partition: int) -> Batch:
        builder: Any = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, self._settings.producer_batch_bytes_max + 200)
        deadline = time.monotonic() + self._settings.produce_timeout_ms / 1000
        return Batch(topic, partition, builder, asyncio.get_running_loop().create_future(), deadline)

    def _append(self, batch: Batch, record: OutgoingRecord, now_ms: int) -> Ticket | None:
        index = batch.count
        timestamp_ms = record.timestamp_ms if record.timestamp_ms is not None else now_ms
        headers = record.headers
        added = batch.builder.append(index, timestamp_ms, record.key, record.value, list(headers) if headers else [])
        if added is None:
            return None
        batch.count = index + 1
        batch.bytes += added.size
        self._pending_bytes += added.size
        return Ticket(batch, index, timestamp_ms)

    def _put(self, topic: str, partition: int, record: OutgoingRecord, now_ms: int) -> Ticket:
        lane = self._lanes.get((topic, partition))
        if lane is None:
            lane = self._lanes[topic, partition] = Lane(topic, partition)
        if lane.gathering is None:
            lane.gathering = self._new_batch(topic, partition)
            self._make_ready(lane)
        ticket = self._append(lane.gathering, record, now_ms)
        if ticket is None:
            lane.waiting.append(lane.gathering)
            lane.gathering = self._new_batch(topic, partition)
            ticket = self._append(lane.gathering, record, now_ms)
            assert ticket is not None, "a batch takes one record of any size"
        return ticket

    def _make_ready(self, lane: Lane) -> None:
        if not lane.busy:
            self._ready[lane] = None
            self._schedule()

    def _schedule(self) -> None:
        if not self._flush_soon:
            self._flush_soon = True
            # Not at once: the other requests of this turn of the loop come along.
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Send what is ready to every broker that has nothing on the way."""
        self._flush_soon = False
        if not self._ready:
            return
        by_node: dict[int | None, list[Lane]] = {}
        for lane in self._ready:
            leader = self._link.leader(lane.topic, lane.partition)
            if leader is None or leader not in self._busy_nodes:
                by_node.setdefault(leader, []).append(lane)
        for node_id, lanes in by_node.items():
            if node_id is not None:
                self._busy_nodes.add(node_id)
                taken = self._taken(lanes)
                self._start(self._send(node_id, taken))
            else:
                for lane in lanes:
                    del self._ready[lane]
                    lane.busy = True
                self._start(self._await_leaders(lanes))

    def _taken(self, lanes: list[Lane]) -> list[tuple[Lane, Batch]]:
        """The next batch of each lane, up to what a request may hold."""
        taken: list[tuple[Lane, Batch]] = []
        size = 0
        for lane in lanes:
            batch = lane.waiting[0] if lane.waiting else lane.gathering
            assert batch is not None
            size += batch.bytes
            if taken and size > request_bytes_max:
                break
            del self._ready[lane]
            lane.busy = True
            taken.append((lane, lane.take()))
        return taken

    def _start(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, node_id: int, taken: list[tuple[Lane, Batch]]) -> None:
        pauses: dict[Lane, float] = {}
        try:
            if self._identity is None:
                async with self._renewing:
                    if self._identity is None:
                        self._identity = await self._link.new_identity()
            for lane, batch in taken:
                lane.seal(batch, self._identity)
            answer = await self._link.produce(node_id, [batch for _, batch in taken])
        except asyncio.CancelledError:
            for lane, batch in taken:
                batch.in_doubt = True
                self._settle(batch, ShuttingDown("The proxy shut down before the brokers had answered."))
                lane.busy = False
            raise
        except Exception as error:
            # A broker that could not be reached has nothing of the request; any other failure leaves it in doubt.
            reached = not isinstance(error, (kafka.NodeNotReadyError, BrokerUnavailable))
            for lane, batch in taken:
                batch.in_doubt = batch.in_doubt or reached
                pauses[lane] = self._retry_or_give_up(lane, batch, proxy_error(error))
        else:
            for lane, batch in taken:
                pauses[lane] = self._conclude(lane, batch, answer.get((batch.topic, batch.partition)))
        self._busy_nodes.discard(node_id)
        self._release(lane for lane, pause in pauses.items() if not pause)
        # A partition in trouble waits by itself: its neighbours on the same broker go on.
        if delayed := [lane for lane, pause in pauses.items() if pause]:
            await asyncio.sleep(max(pauses.values()))
            await self._link.refresh()
            self._release(delayed)

    async def _await_leaders(self, lanes: list[Lane]) -> None:
        await self._link.refresh()
        now = time.monotonic()
        for lane in lanes:
            known = self._link.known_partitions(lane.topic)
            overdue: ProxyError | None = None
            for batch in lane.batches():
                batch.attempts += 1
                if known is not None and lane.partition not in known:
                    overdue = PartitionNotFound()
                elif known is None and batch.attempts > unknown_topic_attempts:
                    overdue = TopicNotFound()
                elif now > batch.deadline:
                    overdue = BrokerUnavailable(f"Partition {lane.partition} of {lane.topic} has no leader.")
                if overdue is not None:
                    self._settle(batch, overdue)
            if overdue is not None:
                lane.clear()
        await asyncio.sleep(retry_pause_seconds * 2)
        self._release(lanes)

    def _release(self, lanes: Any) -> None:
        for lane in lanes:
            lane.busy = False
            if lane.waiting or lane.gathering is not None:
                self._ready[lane] = None
        if self._ready:
            # From here, not in the loop's next turn: everything that could come along has had its time.
            self._flush()

    def _conclude(self, lane: Lane, batch: Batch, placed: Placed | None) -> float:
        """Take a broker's answer; the seconds to wait before the next attempt, 0 when there is none."""
        if placed is None:
            batch.in_doubt = True
            return self._retry_or_give_up(lane, batch, proxy_error(kafka.KafkaError("the broker left the batch out")))
        error_class = placed.error
        if error_class is None or error_class is kafka.DuplicateSequenceNumber:
            batch.base_offset, batch.append_time_ms = placed.base_offset, placed.append_time_ms
            lane.settled(batch)
            self._settle(batch)
            return 0.0
        if issubclass(error_class, _IDENTITY_LOST) and not lane.is_fixed and batch.attempts < identities_max:
            self._forget(batch.identity)
            batch.identity = None
            batch.attempts += 1
            lane.waiting.appendleft(batch)
            return retry_pause_seconds
        batch.in_doubt = batch.in_doubt or error_class in _AFTER_APPEND
        if getattr(error_class, "retriable", False):
            is_gone = error_class is kafka.UnknownTopicOrPartitionError and batch.attempts >= unknown_topic_attempts
            if not is_gone:
                return self._retry_or_give_up(lane, batch, refusal(error_class, batch.topic))
        self._give_up(batch, refusal(error_class, batch.topic))
        return 0.0

    def _retry_or_give_up(self, lane: Lane, batch: Batch, error: ProxyError) -> float:
        batch.attempts += 1
        pause: float = min(retry_pause_seconds * 2 ** min(batch.attempts, 10), retry_pause_max_seconds)
        if self._closed or time.monotonic() + pause > batch.deadline:
            self._give_up(batch, error)
            return retry_pause_seconds
        lane.waiting.appendleft(batch)
        return pause

    def _give_up(self, batch: Batch, error: ProxyError) -> None:
        if batch.in_doubt:
            # Sequences after it would be refused, or worse, taken for it.
            self._forget(batch.identity)
            error = type(error)(f"{error} The records may have been written all the same.")
        self._settle(batch, error)

    def _forget(self, identity: ProducerIdentity | None) -> None:
        if self._identity is identity:
            self._identity = None

    def _settle(self, batch: Batch, error: ProxyError | None = None) -> None:
        if not batch.settled.done():
            self._pending_bytes -= batch.bytes
            batch.settle(error)
