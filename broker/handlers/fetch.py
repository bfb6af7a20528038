"""Fetch v4-18: batches from an offset on, waiting for them if asked to (topic ids from v13, KIP-516).

A fetch is answered at once when it has `min_bytes`, all that its limits allow, an error, or no time to wait; else when
enough bytes arrive in one of its partitions or `max_wait_ms` has passed. Records are stretches of segment files, sent
without being read. A batch that the limits would cut, which the protocol allows, is left for the next fetch. The first
one of a response is whole however large (KIP-74). Who names the epoch it fetched last is told where its log and this
one part (KIP-595).

Deviations: fetch sessions (KIP-227) are refused as the protocol provides: every answer carries session id 0, so
clients send full requests. An epoch that continues a session gets FETCH_SESSION_ID_NOT_FOUND. There are no
followers to fetch from, and requests in the name of one are served like a consumer's. A batch whose checksum no longer
matches is answered with CORRUPT_MESSAGE, where Kafka sends it and lets the client find out.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from broker.broker import Broker
from broker.clock import Timer
from broker.context import RequestContext
from broker.deferred import Deferred
from broker.errors import StorageError
from broker.log.partition_log import OffsetOutOfRange
from broker.log.segment import Region
from broker.protocol.entities import Answer, Request, milliseconds
from broker.protocol.payload import Chunk, Payload
from broker.protocol.record_batch import CorruptBatch
from broker.protocol.templates import ArrayTemplate, NumbersTemplate, compact_length, encode, item_type
from broker.state.topics import Partition, Topic

API_KEY = 1
VERSIONS = range(4, 19)

READ_COMMITTED = 1
TOPIC_IDS_SINCE_VERSION = 13

# Marks the template of an answer that holds one partition and nothing else.
_ALONE = 1


def handle(broker: Broker, context: RequestContext, request: Request) -> bytes | Payload | Deferred[Payload]:
    version = context.api_version
    shape = _shape(version)
    if getattr(request, "session_epoch", -1) > 0:
        return shape.refusal(ErrorCode.fetch_session_id_not_found)
    fetch = _Fetch(broker, request, shape)
    payload, found_bytes, answer_now = fetch.collect()
    wait_ms = milliseconds(request.max_wait)
    if answer_now or found_bytes >= request.min_bytes or wait_ms <= 0 or not fetch.partitions:
        return payload
    return fetch.wait(request.min_bytes - found_bytes, wait_ms)


class AskedPartition(NamedTuple):
    """What a request asks of one partition, in the fields of the newest version."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    partition_max_bytes: int


def fetch_one(
    broker: Broker,
    topic: Topic,
    asked: AskedPartition,
    offset: int,
    version: int,
    max_bytes: int,
    min_bytes: int,
    isolation: int,
) -> Payload | None:
    """The answer to a fetch of one partition from `offset` on, if it can be given at once and holds records."""
    partition = _find(topic, asked.partition)
    if partition is None or offset == partition.log.log_end_offset:
        return None
    budget = min(max_bytes, broker.settings.fetch_max_bytes)
    try:
        region = _read(partition, asked, offset, budget, at_least_one=True)
    except (_Refused, _Diverged):
        return None
    if region is None or region.length == 0:
        return None
    if region.length < min_bytes and not partition.log.has_more(region):
        return None
    return _shape(version).alone(partition, isolation, region)


class _Fetch:
    """One request: what it asks of which partitions, and its wait."""

    __slots__ = (
        "_answer",
        "_broker",
        "_missing_bytes",
        "_request",
        "_shape",
        "_timer",
        "_topics",
        "partitions",
    )

    def __init__(self, broker: Broker, request: Request, shape: "_Shape") -> None:
        self._broker = broker
        self._request = request
        self._shape = shape
        self._topics = _each_once(request.topics, by_id=shape.version >= TOPIC_IDS_SINCE_VERSION)
        self.partitions: list[Partition] = []
        self._missing_bytes = 0
        self._answer: Deferred[Payload] = Deferred()
        self._timer: Timer | None = None

    def collect(self) -> tuple[Payload, int, bool]:
        """(the response as of now, how many bytes of records it has, whether something in it must not wait)."""
        request, shape = self._request, self._shape
        by_id = shape.version >= TOPIC_IDS_SINCE_VERSION
        topics = self._broker.topics
        isolation = request.isolation_level
        budget = min(request.max_bytes, self._broker.settings.fetch_max_bytes)
        found_bytes, answer_now = 0, False
        self.partitions = waiting = []
        chunks: list[Chunk] = []
        pieces: list[bytes] = [shape.response.head, shape.response.length(len(self._topics))]
        for wanted, asked_partitions in self._topics:
            topic = topics.find_by_id(wanted.topic_id) if by_id else topics.find(wanted.topic)
            pieces.append(shape.topic_head(topic, wanted))
            pieces.append(shape.topic_length(len(asked_partitions)))
            for asked in asked_partitions:
                partition = _find(topic, asked.partition)
                try:
                    if partition is None:
                        raise _Refused(_unknown(topic, by_id=by_id))
                    region = _read(partition, asked, asked.fetch_offset, budget, at_least_one=found_bytes == 0)
                except _Refused as refusal:
                    answer_now = True
                    pieces.append(shape.failure(asked.partition, refusal, partition))
                    continue
                except _Diverged as parting:
                    answer_now = True
                    pieces.append(shape.parting(parting))
                    continue
                waiting.append(partition)
                pieces.append(shape.success(partition, isolation))
                # What its limits kept out does not come by waiting.
                if region is None:
                    answer_now = answer_now or asked.fetch_offset < partition.log.log_end_offset
                    pieces.append(shape.no_records)
                    continue
                answer_now = answer_now or partition.log.has_more(region)
                if region.length == 0:
                    pieces.append(shape.no_records)
                    continue
                found_bytes += region.length
                budget -= region.length
                pieces.append(shape.records_length(region.length))
                chunks.append(b"".join(pieces))
                chunks.append(region)
                pieces = [shape.records_tail]
            pieces.append(shape.topic_tail)
        pieces.append(shape.response.tail)
        tail = b"".join(pieces)
        # Before version 12 nothing follows the records, and an empty chunk would leave them in the kernel's hands.
        if tail:
            chunks.append(tail)
        length = sum(chunk.length if isinstance(chunk, Region) else len(chunk) for chunk in chunks)
        return Payload(chunks, length), found_bytes, answer_now

    def wait(self, missing_bytes: int, wait_ms: int) -> Deferred[Payload]:
        self._missing_bytes = missing_bytes
        for partition in self.partitions:
            partition.waiters[self] = self._arrived
        self._timer = self._broker.timers.after(wait_ms, self._finish)
        self._answer.on_abandon = self._stop_waiting
        return self._answer

    def _arrived(self, arrived_bytes: int) -> None:
        self._missing_bytes -= arrived_bytes
        # Zero bytes say that something else happened to the partition, such as its deletion.
        if self._missing_bytes <= 0 or arrived_bytes == 0:
            self._finish()

    def _finish(self) -> None:
        if self._answer.done:
            return
        self._stop_waiting()
        self._answer.complete(self.collect()[0])

    def _stop_waiting(self) -> None:
        for partition in self.partitions:
            partition.waiters.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


class _Refused(Exception):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


class _Diverged(Exception):
    """The log that the client has is not a part of this one: the last epoch of both, and where it ends here."""

    def __init__(self, partition: Partition, epoch: int, end_offset: int) -> None:
        super().__init__(f"epoch {epoch} ends at {end_offset}")
        self.partition = partition
        self.epoch = epoch
        self.end_offset = end_offset


def _each_once(topics: Iterable[Request], *, by_id: bool) -> list[tuple[Request, list[Request]]]:
    """Topics with what is asked of their partitions. As in Kafka, a partition that is named twice is fetched as it was
    named last, in the place where it was named first, and a topic that is named twice in a row is one."""
    partitions: dict[tuple[object, int], tuple[Request, Request]] = {}
    for wanted in topics:
        name = wanted.topic_id if by_id else wanted.topic
        for asked in wanted.partitions:
            partitions[name, asked.partition] = wanted, asked
    grouped: list[tuple[Request, list[Request]]] = []
    last: object = None
    for (name, _), (wanted, asked) in partitions.items():
        if not grouped or name != last:
            grouped.append((wanted, []))
            last = name
        grouped[-1][1].append(asked)
    return grouped


def _find(topic: Topic | None, index: int) -> Partition | None:
    return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None


def _unknown(topic: Topic | None, *, by_id: bool) -> ErrorCode:
    return ErrorCode.unknown_topic_id if topic is None and by_id else ErrorCode.unknown_topic_or_partition


def _read(
    partition: Partition, asked: Request | AskedPartition, offset: int, budget: int, *, at_least_one: bool
) -> Region | None:
    log = partition.log
    epoch = getattr(asked, "current_leader_epoch", -1)
    if epoch >= 0 and epoch != log.leader_epoch:
        fenced = epoch < log.leader_epoch
        raise _Refused(ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch)
    last_epoch = getattr(asked, "last_fetched_epoch", -1)
    if last_epoch >= 0:
        _check_epoch(partition, last_epoch, offset)
    max_bytes = min(asked.partition_max_bytes, budget)
    if max_bytes <= 0 and not at_least_one:
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise _Refused(ErrorCode.offset_out_of_range)
        return None
    try:
        return log.read(offset, max(max_bytes, 0), at_least_one=at_least_one)
    except OffsetOutOfRange:
        raise _Refused(ErrorCode.offset_out_of_range) from None
    except CorruptBatch:
        raise _Refused(ErrorCode.corrupt_message) from None
    except (StorageError, OSError):
        raise _Refused(ErrorCode.kafka_storage_error) from None


def _check_epoch(partition: Partition, last_epoch: int, offset: int) -> None:
    epoch, end_offset = partition.log.end_offset_for_epoch(last_epoch)
    if epoch < 0 or offset < partition.log.log_start_offset:
        raise _Refused(ErrorCode.offset_out_of_range)
    if epoch < last_epoch or end_offset < offset:
        raise _Diverged(partition, epoch, end_offset)


class _Shape:
    """The response's layout at one version, as templates."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._schema = load_response_schema(API_KEY, version)
        self._topic_schema = item_type(self._schema, "responses")
        self._partition_schema = item_type(self._topic_schema, "partitions")
        self.response = ArrayTemplate(self._schema, {}, "responses", {"partitions": ()})
        self._any_topic = probe = self._topic_template("", None)
        self.topic_tail = probe.tail
        self.topic_length = probe.length
        # The records are a partition's last field: a length, the bytes and, in flexible versions, no tagged fields.
        self._flexible = probe.flexible
        self._empty = b"\x01\x00" if self._flexible else b"\x00\x00\x00\x00"
        self.records_tail = b"\x00" if self._flexible else b""
        self.no_records = self._empty
        self._tail_alone = self.records_tail + self.topic_tail + self.response.tail

    def records_length(self, length: int) -> bytes:
        return compact_length(length) if self._flexible else length.to_bytes(4)

    def refusal(self, error: ErrorCode) -> bytes:
        return encode(self._schema, {"error_code": error, "responses": ()})

    def _topic_template(self, name: str, topic_id: object) -> ArrayTemplate:
        fields: Answer = {"topic": name, "topic_id": topic_id}
        return ArrayTemplate(self._topic_schema, fields, "partitions", {"aborted_transactions": None})

    def topic_head(self, topic: Topic | None, wanted: Request) -> bytes:
        if topic is None:
            named = {"topic": getattr(wanted, "topic", ""), "topic_id": getattr(wanted, "topic_id", None)}
            return self._any_topic.head_of(encode(self._topic_schema, named))
        key = (API_KEY, self.version)
        head = topic.templates.get(key)
        if head is None:
            head = topic.templates[key] = self._topic_template(topic.name, topic.topic_id).head
        return head

    def success(self, partition: Partition, isolation: int) -> bytes:
        """A partition without an error, up to the length of its records."""
        key = (API_KEY, self.version, isolation)
        template = partition.templates.get(key)
        if template is None:
            template = partition.templates[key] = self._partition_template(partition, isolation)
        return self._filled(template, partition)

    def _filled(self, template: NumbersTemplate, partition: Partition) -> bytes:
        log = partition.log
        end = log.log_end_offset
        if self.version >= 5:
            return template.head + template.pack(end, end, log.log_start_offset) + template.tail
        return template.head + template.pack(end, end) + template.tail

    def alone(self, partition: Partition, isolation: int, region: Region) -> Payload:
        """An answer with the records of one partition, as a whole."""
        key = (API_KEY, self.version, isolation, _ALONE)
        template = partition.templates.get(key)
        if template is None:
            before = self.response.head + self.response.length(1) + self.topic_head(partition.topic, None)
            template = self._partition_template(partition, isolation).within(before + self.topic_length(1), b"")
            partition.templates[key] = template
        head = self._filled(template, partition) + self.records_length(region.length)
        length = len(head) + region.length
        tail = self._tail_alone
        return Payload((head, region, tail), length + len(tail)) if tail else Payload((head, region), length)

    def _partition_template(self, partition: Partition, isolation: int) -> NumbersTemplate:
        template = NumbersTemplate(
            self._partition_schema,
            {
                "partition_index": partition.index,
                "error_code": ErrorCode.none,
                "aborted_transactions": () if isolation == READ_COMMITTED else None,
                "preferred_read_replica": -1,
                "records": b"",
            },
            ("high_watermark", "last_stable_offset", "log_start_offset"),
        )
        template.tail = template.tail.removesuffix(self._empty)
        return template

    def parting(self, parting: _Diverged) -> bytes:
        partition, log = parting.partition, parting.partition.log
        fields: Answer = {
            "partition_index": partition.index,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "log_start_offset": log.log_start_offset,
            "diverging_epoch": {"epoch": parting.epoch, "end_offset": parting.end_offset},
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": b"",
        }
        return encode(self._partition_schema, fields)

    def failure(self, index: int, refusal: _Refused, partition: Partition | None) -> bytes:
        out_of_range = refusal.error is ErrorCode.offset_out_of_range and partition is not None
        start = partition.log.log_start_offset if out_of_range and partition is not None else -1
        # The index is the first field. A request can name thousands of partitions that do not exist.
        return index.to_bytes(4, signed=True) + self._failure_behind_index(refusal.error, start)

    @lru_cache(maxsize=64)  # noqa: B019  # there is one shape per version, for good
    def _failure_behind_index(self, error: ErrorCode, log_start_offset: int) -> bytes:
        failure = {
            "partition_index": 0,
            "error_code": error,
            "high_watermark": -1,
            "last_stable_offset": -1,
            "log_start_offset": log_start_offset,
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": b"",
        }
        return encode(self._partition_schema, failure)[4:]


@cache
def _shape(version: int) -> _Shape:
    return _Shape(version)
