"""Produce v3-13: append batches, answered as durably as `acks` asks (topic ids from v13, KIP-516).

acks=0 is not answered (and a fault closes the connection, the only way to tell), acks=1 is answered from the page
cache, acks=all when the batch is on the disk: the fdatasync is shared with every other batch that waits for one.
Consumers see a batch with acks=all from then on, and one with acks=0 or 1 at once, unless it comes after one that
waits.
`headgate.acks.all.fsync=false` relaxes acks=all to acks=1, for producers and consumers.

Each partition takes exactly one v2 batch, verified (checksum, counts, sizes, timestamps, sequence) and appended as it
is. A repeated batch of an idempotent producer is answered with the offset it got the first time.

Deviations: batches are kept as sent whatever `compression.type` says; Kafka compresses them again. Kafka walks every
record; here batches of up to 32 records (compressed: and up to 16 KiB) are walked, in uncompressed ones of up to 1,024
the records are counted, larger ones have their count held against their bytes, and all are walked where
`cleanup.policy` or the timestamp limits need it.
Offset deltas with gaps and, in compressed batches, records that do not fill their lengths, which Kafka takes, and
records that do not decompress, which it answers with UNKNOWN_SERVER_ERROR, are INVALID_RECORD, and so are more than
200,000 records in a batch that has to be walked. A header whose largest timestamp is past
`message.timestamp.after.max.ms` is INVALID_TIMESTAMP although no record has it; Kafka corrects it.
Two batches for one partition in one request are both rejected with INVALID_REQUEST. Kafka appends the later one, drops
the other one and acknowledges both with one answer.
Transactional batches are refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED until transactions exist.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from headgate.broker.broker import Broker
from headgate.broker.context import RequestContext
from headgate.broker.deferred import Deferred
from headgate.broker.errors import PartitionDeleted, StorageError
from headgate.broker.handlers.record_rules import RecordError, Refused, check_records
from headgate.broker.protocol.entities import Answer, Request
from headgate.broker.protocol.payload import NO_REPLY, Disconnect, NoReply
from headgate.broker.protocol.record_batch import TRANSACTIONAL_FLAG, CorruptBatch, UnsupportedCodec, validate_produced
from headgate.broker.protocol.record_walk import InvalidBatch
from headgate.broker.protocol.templates import ArrayTemplate, NumbersTemplate, encode, item_type
from headgate.broker.state.producers import OutOfOrderSequence, StaleProducerEpoch
from headgate.broker.state.topics import Partition, Topic

API_KEY = 0
VERSIONS = range(3, 14)

ZSTD_SINCE_VERSION = 7
START_OFFSET_SINCE_VERSION = 5

_DISK_FAILED = Refused(ErrorCode.kafka_storage_error, "the disk failed; see the broker's log")
_READ_ONLY = "the disk is full: the broker is read-only until there is space"
_DELETED = Refused(ErrorCode.unknown_topic_or_partition, "the topic was deleted before the batch was on the disk")

Outcome = bytes | NoReply | Disconnect | Deferred[bytes]


def handle(broker: Broker, context: RequestContext, request: Request) -> Outcome:
    acks = request.acks
    version = context.api_version
    now_ms = broker.clock.wall_ms()
    fsynced = acks == -1 and broker.settings.headgate_acks_all_fsync
    shape = _shape(version)
    topics = _by_topic(request.topic_data, version)
    pieces: list[bytes] = [shape.response.head, shape.response.length(len(topics))]
    unflushed: dict[int, Partition] = {}
    refused: ErrorCode | None = None
    for topic_data, partition_data in topics:
        topic = broker.topics.find_by_id(topic_data.topic_id) if version >= 13 else broker.topics.find(topic_data.name)
        pieces.append(shape.topic_head(topic, topic_data))
        pieces.append(shape.topic_length(len(partition_data)))
        for index, data in partition_data.items():
            try:
                partition = _partition(topic, index, version)
                if data is None:
                    raise Refused(ErrorCode.invalid_request, "the request has several batches for this partition")
                if acks not in (-1, 0, 1):
                    raise Refused(ErrorCode.invalid_required_acks, "acks must be -1, 0 or 1")
                if not broker.reserve.has_space():
                    raise Refused(ErrorCode.kafka_storage_error, _READ_ONLY)
                offset, append_time = _append(partition, data.records, version, now_ms, awaits_flush=fsynced)
            except Refused as refusal:
                # Not the exception: it would keep what was inflated for as long as this frame is kept by it.
                refused = refusal.error
                pieces.append(shape.failure(index, refusal))
                continue
            if fsynced or partition.log.is_flush_due:
                unflushed[len(pieces)] = partition
            pieces.append(shape.success(partition, offset, append_time))
        pieces.append(shape.topic_tail)
    pieces.append(shape.response.tail)
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
    """The same for a single batch that is to be answered, None where it is refused: that takes the ordinary way."""
    if broker.reserve.is_released:
        return None
    fsynced = acks == -1 and broker.settings.headgate_acks_all_fsync
    try:
        partition = _partition(topic, index, version)
        offset, append_time = _append(partition, batch, version, broker.clock.wall_ms(), awaits_flush=fsynced)
    except Refused:
        return None
    log = partition.log
    template = partition.templates.get((API_KEY, version, 1)) or _shape(version).whole_template(partition)
    body = _filled(template, version, offset, append_time, log.log_start_offset)
    if not fsynced and not log.is_flush_due:
        return body
    flushed = broker.group_commit.flush(log)
    answer: Deferred[bytes] = Deferred()
    flushed.then(
        lambda error: answer.complete(
            body if error is None else _shape(version).whole_failure(partition, _unflushed(error))
        )
    )
    return answer


def _by_topic(topic_data: Iterable[Request], version: int) -> list[tuple[Request, Mapping[int, Request | None]]]:
    """Topics with their batches by partition, None for a partition that has more than one batch.

    As in Kafka, a topic that the request contains twice is answered once.
    """
    topics: dict[object, tuple[Request, dict[int, Request | None]]] = {}
    for data in topic_data:
        name = data.topic_id if version >= 13 else data.name
        _, partitions = topics.setdefault(name, (data, {}))
        for partition in data.partition_data:
            partitions[partition.index] = None if partition.index in partitions else partition
    return [(data, partitions) for data, partitions in topics.values() if partitions]


def _partition(topic: Topic | None, index: int, version: int) -> Partition:
    if topic is None:
        if version >= 13:
            raise Refused(ErrorCode.unknown_topic_id, "no topic has this id")
        raise Refused(ErrorCode.unknown_topic_or_partition, "the topic does not exist")
    if not 0 <= index < len(topic.partitions):
        raise Refused(ErrorCode.unknown_topic_or_partition, f"{topic.name} has no partition {index}")
    if topic.internal:
        raise Refused(ErrorCode.invalid_topic_exception, f"{topic.name} is written by the broker alone")
    return topic.partitions[index]


def _append(
    partition: Partition, batch: bytes | memoryview | None, version: int, now_ms: int, *, awaits_flush: bool
) -> tuple[int, int]:
    """(base offset, log append time or -1)"""
    log = partition.log
    settings = log.settings
    try:
        batch, header = validate_produced(batch or b"", takes_zstd=version >= ZSTD_SINCE_VERSION)
    except UnsupportedCodec as error:
        raise Refused(ErrorCode.unsupported_compression_type, f"Produce v{version}: {error}") from error
    except InvalidBatch as error:
        raise Refused(ErrorCode.invalid_record, str(error)) from error
    except CorruptBatch as error:
        raise Refused(ErrorCode.corrupt_message, str(error)) from error
    if header.attributes & TRANSACTIONAL_FLAG:
        raise Refused(ErrorCode.transactional_id_authorization_failed, "this broker has no transactions yet")
    if len(batch) > settings.max_message_bytes:
        raise Refused(
            ErrorCode.message_too_large, f"a batch of {len(batch)} bytes is over {settings.max_message_bytes}"
        )
    check_records(batch, header, settings, log.name, now_ms)
    if header.producer_id >= 0:
        try:
            repeated = log.producers.check(header)
        except OutOfOrderSequence as error:
            raise Refused(ErrorCode.out_of_order_sequence_number, str(error)) from error
        except StaleProducerEpoch as error:
            raise Refused(ErrorCode.invalid_producer_epoch, str(error)) from error
        if repeated is not None:
            return repeated.base_offset, repeated.timestamp
    try:
        offset = log.append(batch, header, now_ms, awaits_flush=awaits_flush)
    except StorageError as error:
        raise Refused(ErrorCode.kafka_storage_error, str(error)) from error
    if partition.waiters and log.hidden.first is None:
        partition.notify(len(batch))
    return offset, now_ms if settings.uses_log_append_time else -1


def _when_flushed(
    broker: Broker, partitions: Mapping[int, Partition], pieces: list[bytes], version: int
) -> Deferred[bytes]:
    """The answer once every partition is on the disk; the piece of one that does not get there tells why."""
    answer: Deferred[bytes] = Deferred()
    left = len(partitions)

    def flushed(place: int, error: StorageError | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            pieces[place] = _shape(version).failure(partitions[place].index, _unflushed(error))
        if left == 0:
            answer.complete(b"".join(pieces))

    for place, partition in partitions.items():
        broker.group_commit.flush(partition.log).then(partial(flushed, place))
    return answer


def _unflushed(error: StorageError) -> Refused:
    return _DELETED if isinstance(error, PartitionDeleted) else _DISK_FAILED


def _filled(template: NumbersTemplate, version: int, offset: int, append_time: int, start_offset: int) -> bytes:
    if version >= START_OFFSET_SINCE_VERSION:
        return template.head + template.pack(offset, append_time, start_offset) + template.tail
    return template.head + template.pack(offset, append_time) + template.tail


class _Shape:
    """The response's layout at one version, as templates."""

    def __init__(self, version: int) -> None:
        self.version = version
        schema = load_response_schema(API_KEY, version)
        self._topic_schema = item_type(schema, "responses")
        self._partition_schema = item_type(self._topic_schema, "partition_responses")
        self._sample: Answer = {"index": 0}
        self.response = ArrayTemplate(schema, {}, "responses", {"partition_responses": ()})
        self._any_topic = probe = self._topic_template("", None)
        self.topic_tail = probe.tail
        self.topic_length: Callable[[int], bytes] = probe.length

    def _topic_template(self, name: str, topic_id: object) -> ArrayTemplate:
        fields: Answer = {"name": name, "topic_id": topic_id}
        return ArrayTemplate(self._topic_schema, fields, "partition_responses", self._sample)

    def topic_head(self, topic: Topic | None, topic_data: Request | None) -> bytes:
        if topic is None:
            named = {"name": getattr(topic_data, "name", ""), "topic_id": getattr(topic_data, "topic_id", None)}
            return self._any_topic.head_of(encode(self._topic_schema, named))
        key = (API_KEY, self.version)
        head = topic.templates.get(key)
        if head is None:
            head = topic.templates[key] = self._topic_template(topic.name, topic.topic_id).head
        return head

    def success(self, partition: Partition, offset: int, append_time: int) -> bytes:
        template = self._success_template(partition)
        return _filled(template, self.version, offset, append_time, partition.log.log_start_offset)

    def _success_template(self, partition: Partition) -> NumbersTemplate:
        key = (API_KEY, self.version, 0)
        template = partition.templates.get(key)
        if template is None:
            template = partition.templates[key] = NumbersTemplate(
                self._partition_schema,
                {"index": partition.index, "error_code": ErrorCode.none},
                ("base_offset", "log_append_time", "log_start_offset"),
            )
        return template

    def whole_template(self, partition: Partition) -> NumbersTemplate:
        """The whole response to a request with one batch, which was taken."""
        before, behind = self._around(partition)
        template = self._success_template(partition).within(before, behind)
        partition.templates[API_KEY, self.version, 1] = template
        return template

    def whole_failure(self, partition: Partition, refusal: Refused) -> bytes:
        before, behind = self._around(partition)
        return before + self.failure(partition.index, refusal) + behind

    def _around(self, partition: Partition) -> tuple[bytes, bytes]:
        before = self.response.head + self.response.length(1) + self.topic_head(partition.topic, None)
        return before + self.topic_length(1), self.topic_tail + self.response.tail

    def failure(self, index: int, refusal: Refused) -> bytes:
        # The index is the first field. A request can name thousands of partitions that do not exist.
        return index.to_bytes(4, signed=True) + self._failure_behind_index(
            refusal.error, str(refusal), tuple(refusal.record_errors)
        )

    @lru_cache(maxsize=64)  # noqa: B019  # there is one shape per version, for good
    def _failure_behind_index(self, error: ErrorCode, message: str, record_errors: tuple[RecordError, ...]) -> bytes:
        failure = {
            "index": 0,
            "error_code": error,
            "base_offset": -1,
            "log_append_time": None,
            "log_start_offset": -1,
            "record_errors": tuple(
                {"batch_index": fault.batch_index, "batch_index_error_message": fault.message}
                for fault in record_errors
            ),
            "error_message": message,
        }
        return encode(self._partition_schema, failure)[4:]


@cache
def _shape(version: int) -> _Shape:
    return _Shape(version)
