"""Idempotent producer (KIP-98): sends queued batches with acks=all and retries them with the same sequence number.

Each broker has one in-flight request, and each partition has one in-flight batch. Batches for several partitions of one
broker share a request. A batch keeps its producer id and sequence number until a broker responds, so it is stored once.

Outcomes of a batch:

- A definite response settles the batch.
- A missing response (timeout, lost connection), or an error that may follow the append, leaves the batch *in doubt*.
  The producer retries it with the same numbers until its deadline. After the deadline, the error says that the records
  may have been written. The shared producer id is then abandoned: brokers would drop a later batch with the same
  sequence number as a duplicate.
- If the broker lost the sequence, it did not store the batch. An unkeyed batch moves to a new producer id. A keyed
  batch returns to the caller (`identity_lost`), because the caller must journal the new numbers first
  (`proxy.producers.idempotency`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.errors import (
    BrokerUnavailable,
    KafkaClientError,
    PartitionNotFound,
    ProducerClosed,
    RetriableError,
    TopicNotFound,
)
from headgate.kafka_client.producer.connection import Placed, ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.partition_queue import PartitionQueue
from headgate.kafka_client.producer.records import NOT_IDEMPOTENT, Batch, ProducerIdentity
from headgate.kafka_client.producer.response_codes import (
    IDENTITY_LOST,
    SEQUENCE_LOST,
    may_be_written,
    possibly_written,
    rejection,
)

retry_pause_seconds: Final = 0.05
retry_pause_max_seconds: Final = 1.0
leader_pause_seconds: Final = 0.1
# A topic that is still unknown after this many metadata updates does not exist. Moving a partition may take longer.
unknown_topic_attempts_max: Final = 4
# After a broker rejects this many producer ids for one batch, another id does not help.
identities_max: Final = 3
# Below the brokers' socket.request.max.bytes of 100 MiB.
request_bytes_max: Final = 32 * 1024 * 1024

Settle = Callable[[Batch, KafkaClientError | None], None]


class Dispatcher:
    def __init__(
        self, options: ProducerOptions, request_timeout_ms: int, link: ProducerConnection, settle: Settle
    ) -> None:
        self._options = options
        self._request_timeout_ms = request_timeout_ms
        self._link = link
        self._settle = settle
        self._ready: dict[PartitionQueue, None] = {}
        self._busy_nodes: set[int | None] = set()
        """Brokers with a request. None: `_await_leaders` is about to start."""
        self._identity: ProducerIdentity | None = None if options.is_idempotent else NOT_IDEMPOTENT
        self._renewing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def make_ready(self, queue: PartitionQueue) -> None:
        """Send the next batch of a queue, unless one of its batches is in flight."""
        if not queue.busy:
            self._ready[queue] = None
            self._start(self._link.leader(queue.topic, queue.partition))

    async def ensure_identity(self) -> None:
        """Request a shared producer id if none exists. Raises KafkaClientError."""
        if self._identity is None:
            async with self._renewing:
                if self._identity is None:
                    self._identity = await self._link.new_identity()

    def renew_identity(self) -> None:
        """Use a new shared producer id from the next batch on."""
        self._identity = None if self._options.is_idempotent else NOT_IDEMPOTENT

    async def close(self) -> None:
        self._closed = True
        deadline = time.monotonic() + self._options.close_timeout_ms / 1000
        while (self._tasks or self._ready) and time.monotonic() < deadline:
            await asyncio.wait(self._tasks or {asyncio.ensure_future(asyncio.sleep(0.01))}, timeout=0.2)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, node_id: int | None) -> None:
        """Start a request to the leader of a ready queue, unless it has an in-flight request.

        The task takes the queued batches in the next event-loop iteration. They then include all records of this one.
        """
        if node_id not in self._busy_nodes:
            self._busy_nodes.add(node_id)
            work = self._await_leaders() if node_id is None else self._send(node_id)
            task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _taken(self, node_id: int) -> list[tuple[PartitionQueue, Batch]]:
        """Take the next batch of each queue, up to the size of a request. Drops batches after their deadline."""
        taken: list[tuple[PartitionQueue, Batch]] = []
        size = 0
        now = time.monotonic()
        for queue in self._led_by(node_id):
            while queue.waiting and self._is_overdue(queue.waiting[0], now):
                self._give_up(queue.take(), self._overdue())
            if not queue.waiting:
                del self._ready[queue]
                continue
            size += queue.waiting[0].bytes
            if taken and size > request_bytes_max:
                break
            del self._ready[queue]
            queue.busy = True
            taken.append((queue, queue.take()))
        return taken

    def _led_by(self, node_id: int | None) -> list[PartitionQueue]:
        return [queue for queue in self._ready if self._link.leader(queue.topic, queue.partition) == node_id]

    def abandon(self, batch: Batch) -> None:
        """Settle a batch that is not sent again because the producer is closed."""
        self._give_up(batch, ProducerClosed("The producer was closed before a broker had acknowledged the records."))

    async def _send(self, node_id: int) -> None:
        taken = self._taken(node_id)
        pauses: dict[PartitionQueue, float] = {}
        is_sent = False
        try:
            if any(not batch.is_keyed for _, batch in taken):
                await self.ensure_identity()
            for queue, batch in taken:
                queue.seal(batch, self._identity)
            is_sent = True
            response = await self._link.produce(node_id, [batch for _, batch in taken]) if taken else {}
        except asyncio.CancelledError:
            for _, batch in taken:
                batch.in_doubt = True
                self.abandon(batch)
            raise
        except Exception as error:
            # Without a connection, no batch was sent. After any other failure, the broker may have stored the batches.
            is_sent = is_sent and not isinstance(error, kafka.NodeNotReadyError)
            for queue, batch in taken:
                batch.in_doubt = batch.in_doubt or is_sent
                pauses[queue] = self._retry_or_give_up(queue, batch, client_error(error))
        else:
            for queue, batch in taken:
                pauses[queue] = self._conclude(queue, batch, response.get((batch.topic, batch.partition)))
        self._busy_nodes.discard(node_id)
        self._release(queue for queue, pause in pauses.items() if not pause)
        # Only the failed partitions wait (backoff). The other partitions of the broker continue.
        if delayed := [queue for queue, pause in pauses.items() if pause]:
            await asyncio.sleep(max(pauses.values()))
            await self._link.refresh()
            self._release(delayed)

    async def _await_leaders(self) -> None:
        queues = self._led_by(None)
        for queue in queues:
            del self._ready[queue]
            queue.busy = True
        self._busy_nodes.discard(None)
        await self._link.refresh()
        now = time.monotonic()
        for queue in queues:
            known = self._link.known_partitions(queue.topic)
            gone: KafkaClientError | None = None
            for batch in queue.waiting:
                batch.attempts += 1
            if known is not None and queue.partition not in known:
                gone = PartitionNotFound()
            elif known is None and queue.waiting and queue.waiting[0].attempts > unknown_topic_attempts_max:
                gone = TopicNotFound()
            while queue.waiting and (gone is not None or now > queue.waiting[0].deadline):
                missing = BrokerUnavailable(f"Partition {queue.partition} of {queue.topic} has no leader.")
                self._give_up(queue.take(), gone or missing)
        await asyncio.sleep(leader_pause_seconds)
        self._release(queues)

    def _release(self, queues: Iterable[PartitionQueue]) -> None:
        for queue in queues:
            queue.busy = False
            if queue.waiting:
                self._ready[queue] = None
        for queue in self._ready:
            self._start(self._link.leader(queue.topic, queue.partition))

    def _conclude(self, queue: PartitionQueue, batch: Batch, placed: Placed | None) -> float:
        """Apply a response. Returns the backoff before the next attempt in seconds, or 0 without a retry."""
        if placed is None:
            batch.in_doubt = True
            missing = RetriableError("The response does not contain the partition.")
            return self._retry_or_give_up(queue, batch, missing)
        code = placed.error
        if code is ErrorCode.duplicate_sequence_number and not (batch.is_keyed or batch.in_doubt):
            # On the first attempt, the duplicate is another batch. This batch was not written.
            code = ErrorCode.out_of_order_sequence_number
        if code is None or code is ErrorCode.duplicate_sequence_number:
            batch.base_offset, batch.append_time_ms = placed.base_offset, placed.append_time_ms
            queue.written(batch)
            self._settle(batch, None)
            return 0.0
        if code in IDENTITY_LOST and (code in SEQUENCE_LOST or not batch.in_doubt):
            return self._without_identity(queue, batch, rejection(code, batch.topic))
        batch.in_doubt = batch.in_doubt or may_be_written(code)
        is_gone = code is ErrorCode.unknown_topic_or_partition and batch.attempts >= unknown_topic_attempts_max
        if code.retriable and not is_gone:
            return self._retry_or_give_up(queue, batch, rejection(code, batch.topic))
        self._give_up(batch, rejection(code, batch.topic))
        return 0.0

    def _without_identity(self, queue: PartitionQueue, batch: Batch, error: KafkaClientError) -> float:
        """Handle a batch that is not stored and cannot be stored with its producer id."""
        batch.in_doubt = False
        if batch.is_keyed:
            batch.identity_lost = True
            self._settle(batch, error)
            return 0.0
        self._forget(batch.identity)
        batch.identity = None
        batch.renewals += 1
        if batch.renewals >= identities_max:
            self._give_up(batch, error)
            return 0.0
        queue.waiting.appendleft(batch)
        return retry_pause_seconds

    def _retry_or_give_up(self, queue: PartitionQueue, batch: Batch, error: KafkaClientError) -> float:
        batch.attempts += 1
        pause: float = min(retry_pause_seconds * 2 ** min(batch.attempts, 10), retry_pause_max_seconds)
        if self._closed or time.monotonic() + pause > batch.deadline:
            self._give_up(batch, error)
            return retry_pause_seconds
        queue.waiting.appendleft(batch)
        return pause

    def _give_up(self, batch: Batch, error: KafkaClientError) -> None:
        if batch.in_doubt:
            # The broker would reject the next sequence number, or drop the next batch as a duplicate of this one.
            self._forget(batch.identity)
            if not isinstance(error, (TopicNotFound, PartitionNotFound)):
                error = possibly_written(error)
        self._settle(batch, error)

    def _forget(self, identity: ProducerIdentity | None) -> None:
        if self._identity is identity:
            self.renew_identity()

    def _is_overdue(self, batch: Batch, now: float) -> bool:
        """Return whether the deadline has passed. An unsent batch may wait for one more request before it."""
        grace = 0.0 if batch.attempts else self._request_timeout_ms / 1000
        return now > batch.deadline + grace

    def _overdue(self) -> KafkaClientError:
        waited = self._options.delivery_timeout_ms
        return BrokerUnavailable(f"The records waited for the broker longer than the delivery timeout of {waited} ms.")
