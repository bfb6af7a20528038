"""Produce v3-13: Appends record batches to partitions (topic ids from v13, KIP-516).

| acks | response | visible to consumers |
|---|---|---|
| 0 | none; after an error the broker closes the connection | at once |
| 1 | when the batch is in the page cache | at once |
| all | when the batch is on disk; one fdatasync serves all waiting batches | when it is on disk |

A batch is also hidden while an earlier batch of the same partition waits for its fdatasync.
With `headgate.acks.all.fsync=false`, acks=all behaves like acks=1.

A partition gets exactly one v2 batch per request. The broker verifies the batch (checksum, counts, sizes, timestamps,
sequence numbers) and appends it unchanged. A duplicate batch of an idempotent producer gets its original offset.

A thread checks the records of large batches before any batch of the request is appended. Meanwhile, later requests of
the connection wait. Therefore the batches of a producer keep their order.

Deviations:
- A batch with another codec than `compression.type`
  Kafka: Compresses the batch again.
  Headgate: Stores the batch as sent.
- The records inside a batch
  Kafka: Validates every record.
  Headgate: Validates each record of batches with up to 32 records (compressed: up to 16 KiB). Counts the records of
  uncompressed batches with up to 1,024 records. In larger batches, checks only that the record count fits the size.
  Validates all records if `cleanup.policy` or the timestamp limits require it.
- Offset deltas with gaps
  Kafka: Accepts the batch.
  Headgate: INVALID_RECORD, in batches whose records are validated.
- A compressed record whose fields are shorter than its length
  Kafka: Accepts the batch.
  Headgate: INVALID_RECORD, in batches whose records are validated.
- An unknown codec
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: INVALID_RECORD
- Records that cannot be decompressed
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: INVALID_RECORD, in batches whose records are validated.
- More than 200,000 records in a batch whose records must be validated
  Kafka: Accepts the batch.
  Headgate: INVALID_RECORD
- `max_timestamp` in the batch header above `message.timestamp.after.max.ms`, but no record with this timestamp
  Kafka: Corrects the header.
  Headgate: INVALID_TIMESTAMP
- Two batches for one partition in one request
  Kafka: Appends the second batch, drops the first one and acknowledges both.
  Headgate: INVALID_REQUEST for both batches.
- A transactional batch
  Kafka: Appends the batch.
  Headgate: TRANSACTIONAL_ID_AUTHORIZATION_FAILED
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

from kio.schema.errors import ErrorCode

from headgate.broker.log.producer_state import OutOfOrderSequence, StaleProducerEpoch
from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.protocol.outcomes import NO_REPLY, Disconnect, NoReply, Refusal
from headgate.broker.protocol.request_shapes import ProduceRequest, ProduceTopic, RequestContext
from headgate.broker.requests.batch_verification import LargeBatch, Verified, verify
from headgate.broker.requests.produce_response import produce_layout
from headgate.broker.requests.record_rules import TooLargeInline, inline_records_max
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import PartitionDeleted, StorageError
from headgate.broker.state.topics import Partition, Topic
from headgate.wire.buffer import Buffer
from headgate.wire.record_batch import BatchHeader

logger = logging.getLogger("headgate.broker.produce")

API_KEY = 0
VERSIONS = range(3, 14)

# How long the event loop verifies the batches of one request. After that, a thread verifies each batch whose records
# must be checked.
inline_checks_ms_max = 5

_DISK_FAILED = Refusal(ErrorCode.kafka_storage_error, "the disk failed; see the broker's log")
_READ_ONLY = Refusal(ErrorCode.kafka_storage_error, "the disk is full: the broker is read-only until there is space")
_DELETED = Refusal(ErrorCode.unknown_topic_or_partition, "the topic was deleted before the batch was on the disk")
_SEVERAL = Refusal(ErrorCode.invalid_request, "the request has several batches for this partition")
_DEFECT = Disconnect("a produce request failed; see the traceback above")
_INVALID_ACKS = Refusal(ErrorCode.invalid_required_acks, "acks must be -1, 0 or 1")

Outcome: TypeAlias = bytes | NoReply | Disconnect

_Batches: TypeAlias = dict[int, Buffer | Refusal | None]
"""The batches of a topic by partition, as sent by the client."""


_Plan: TypeAlias = list[tuple[Topic | None, dict[int, tuple[Partition, Verified] | Refusal]]]
"""By topic and partition: a batch to append, or its refusal."""


def handle(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> Outcome | Deferred[Outcome] | Deferred[bytes]:
    version = context.api_version
    return _Produce(broker, request.acks, version, _by_topic(request.topic_data, version)).execute()


class _Produce:
    """One Produce request: verifies all batches, then appends them."""

    def __init__(self, broker: Broker, acks: int, version: int, topics: list[tuple[ProduceTopic, _Batches]]) -> None:
        self._broker = broker
        self._acks = acks
        self._version = version
        self._topics = topics
        self._now_ms = broker.clock.wall_ms()
        self._verified: dict[tuple[int, int], Verified | Refusal] = {}
        """The results of threads, by `LargeBatch.key`."""

    def execute(self) -> Outcome | Deferred[Outcome] | Deferred[bytes]:
        large: list[LargeBatch] = []
        plan = self._plan(large)
        return self._verify_in_threads(large) if large else self._append(plan)

    def _plan(self, large: list[LargeBatch]) -> _Plan:
        """Verify the batches. Adds batches that need a thread to `large`."""
        broker, version = self._broker, self._version
        clock = broker.clock
        until_ms = clock.monotonic_ms() + inline_checks_ms_max
        plan: _Plan = []
        for position, (requested, batches) in enumerate(self._topics):
            by_id = version >= 13
            topic = broker.topics.find_by_id(requested.topic_id) if by_id else broker.topics.find(requested.name)
            planned: dict[int, tuple[Partition, Verified] | Refusal] = {}
            plan.append((topic, planned))
            for index, batch in batches.items():
                try:
                    partition = _partition(topic, index, version)
                except Refusal as refusal:
                    planned[index] = refusal.without_traceback()
                    continue
                if isinstance(batch, Refusal):
                    planned[index] = batch
                elif self._acks not in (-1, 0, 1):
                    planned[index] = _INVALID_ACKS
                elif not broker.reserve.has_space():
                    planned[index] = _READ_ONLY
                else:
                    inline_records = inline_records_max if clock.monotonic_ms() < until_ms else 0
                    verified = self._verify((position, index), partition, batch, inline_records)
                    if isinstance(verified, LargeBatch):
                        large.append(verified)
                    else:
                        planned[index] = verified if isinstance(verified, Refusal) else (partition, verified)
        return plan

    def _verify(
        self, key: tuple[int, int], partition: Partition, batch: Buffer | None, inline_records: int
    ) -> Verified | Refusal | LargeBatch:
        log, version, now_ms = partition.log, self._version, self._now_ms
        known = self._verified.get(key)
        # Verify again if the topic's settings changed while the thread worked.
        if known is not None and (isinstance(known, Refusal) or known.settings is log.settings):
            return known
        try:
            return verify(batch, version, log.settings, log.name, now_ms, inline_records)
        except TooLargeInline:
            return LargeBatch(key, version, log.settings, log.name, now_ms, bytes(batch or b""))
        except Refusal as refusal:
            return refusal.without_traceback()

    def _verify_in_threads(self, large: list[LargeBatch]) -> Deferred[Outcome]:
        """Verify one batch at a time, so that a request with many batches does not occupy all threads."""
        answer: Deferred[Outcome] = Deferred()
        answer.blocks_connection = True
        for _, batches in self._topics:
            for index, batch in batches.items():
                if isinstance(batch, memoryview):
                    # Copy the batch: other requests overwrite the receive buffer.
                    batches[index] = bytes(batch)
        waiting = deque(large)

        def verify_next() -> None:
            running = self._broker.record_checks.run(waiting[0].verify)
            answer.on_abandon = running.abandon
            running.then(on_verified)

        def on_verified(result: Verified | Refusal | None) -> None:
            try:
                if result is None:
                    answer.complete(_DEFECT)
                    return
                self._verified[waiting.popleft().key] = result
                if waiting:
                    verify_next()
                    return
                outcome = self.execute()
                if isinstance(outcome, Deferred):
                    answer.on_abandon = outcome.abandon
                    outcome.then(answer.complete)
                else:
                    answer.complete(outcome)
            except Exception:
                logger.exception("a produce request failed after its batches were verified")
                if not answer.done:
                    answer.complete(_DEFECT)

        verify_next()
        return answer

    def _append(self, plan: _Plan) -> Outcome | Deferred[bytes]:
        broker, version, acks = self._broker, self._version, self._acks
        fsynced = acks == -1 and broker.settings.headgate_acks_all_fsync
        layout = produce_layout(version)
        pieces: list[bytes] = [layout.response.head, layout.response.length(len(plan))]
        unflushed: dict[int, Partition] = {}
        refused: ErrorCode | None = None
        for (requested, _), (topic, planned) in zip(self._topics, plan, strict=True):
            pieces.append(layout.topic_head(topic, requested.name, requested.topic_id))
            pieces.append(layout.topic_length(len(planned)))
            for index, verified in planned.items():
                if isinstance(verified, Refusal):
                    refused = verified.code
                    pieces.append(layout.failure(index, verified))
                    continue
                partition, (_, batch, header) = verified
                try:
                    offset, append_time = _append(partition, batch, header, self._now_ms, awaits_flush=fsynced)
                except Refusal as refusal:
                    refused = refusal.code
                    pieces.append(layout.failure(index, refusal))
                    continue
                if fsynced or partition.log.is_flush_due:
                    unflushed[len(pieces)] = partition
                pieces.append(layout.success(partition, offset, append_time))
            pieces.append(layout.topic_tail)
        pieces.append(layout.response.tail)
        if acks == 0:
            for partition in unflushed.values():
                broker.group_commit.flush(partition.log)
            return NO_REPLY if refused is None else Disconnect(f"produce with acks=0 failed: {refused.name}")
        if not unflushed:
            return b"".join(pieces)
        return _when_flushed(broker, unflushed, pieces, version)


def produce_one(
    broker: Broker, topic: Topic | None, index: int, batch: memoryview, acks: int, version: int
) -> bytes | Deferred[bytes] | None:
    """Fast path for a request with one batch and acks of 1 or all.

    Returns None if the batch is refused or needs a thread, or if the disk is full. The request then takes the normal
    path.
    """
    if broker.reserve.is_released:
        return None
    fsynced = acks == -1 and broker.settings.headgate_acks_all_fsync
    now_ms = broker.clock.wall_ms()
    try:
        partition = _partition(topic, index, version)
        log = partition.log
        verified = verify(batch, version, log.settings, log.name, now_ms, inline_records_max)
        offset, append_time = _append(partition, verified.batch, verified.header, now_ms, awaits_flush=fsynced)
    except (Refusal, TooLargeInline):
        return None
    layout = produce_layout(version)
    body = layout.whole_success(partition, offset, append_time)
    if not fsynced and not log.is_flush_due:
        return body
    flushed = broker.group_commit.flush(log)
    answer: Deferred[bytes] = Deferred()
    flushed.then(
        lambda error: answer.complete(body if error is None else layout.whole_failure(partition, _unflushed(error)))
    )
    return answer


def _by_topic(topic_data: Iterable[ProduceTopic], version: int) -> list[tuple[ProduceTopic, _Batches]]:
    """Group the batches by topic and partition. A partition with more than one batch is refused.

    As in Kafka, the response contains each topic once, even if the request contains it twice.
    """
    topics: dict[object, tuple[ProduceTopic, _Batches]] = {}
    for data in topic_data:
        name = data.topic_id if version >= 13 else data.name
        _, partitions = topics.setdefault(name, (data, {}))
        for partition in data.partition_data:
            partitions[partition.index] = _SEVERAL if partition.index in partitions else partition.records
    return [(data, partitions) for data, partitions in topics.values() if partitions]


def _partition(topic: Topic | None, index: int, version: int) -> Partition:
    if topic is None:
        if version >= 13:
            raise Refusal(ErrorCode.unknown_topic_id, "no topic has this id")
        raise Refusal(ErrorCode.unknown_topic_or_partition, "the topic does not exist")
    if not 0 <= index < len(topic.partitions):
        raise Refusal(ErrorCode.unknown_topic_or_partition, f"{topic.name} has no partition {index}")
    if topic.internal:
        raise Refusal(ErrorCode.invalid_topic_exception, f"{topic.name} is written by the broker alone")
    return topic.partitions[index]


def _append(
    partition: Partition, batch: Buffer, header: BatchHeader, now_ms: int, *, awaits_flush: bool
) -> tuple[int, int]:
    """Append a batch. Returns its base offset, and its log append time or -1. Raises Refusal."""
    log = partition.log
    if header.producer_id >= 0:
        try:
            repeated = log.producers.check(header)
        except (OutOfOrderSequence, StaleProducerEpoch) as error:
            raise refusal_of(error) from error
        if repeated is not None:
            return repeated.base_offset, repeated.timestamp
    try:
        offset = log.append(batch, header, now_ms, awaits_flush=awaits_flush)
    except StorageError as error:
        raise refusal_of(error) from error
    if partition.waiters and log.hidden.first is None:
        partition.notify(len(batch))
    return offset, now_ms if log.settings.uses_log_append_time else -1


def _when_flushed(
    broker: Broker, partitions: Mapping[int, Partition], pieces: list[bytes], version: int
) -> Deferred[bytes]:
    """Complete the response when all partitions are flushed. A failed flush replaces the partition's piece."""
    answer: Deferred[bytes] = Deferred()
    left = len(partitions)

    def flushed(place: int, error: StorageError | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            pieces[place] = produce_layout(version).failure(partitions[place].index, _unflushed(error))
        if left == 0:
            answer.complete(b"".join(pieces))

    for place, partition in partitions.items():
        broker.group_commit.flush(partition.log).then(partial(flushed, place))
    return answer


def _unflushed(error: StorageError) -> Refusal:
    return _DELETED if isinstance(error, PartitionDeleted) else _DISK_FAILED
