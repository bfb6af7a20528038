"""Fetch v4-18: Returns record batches from an offset on, with long polling (topic ids from v13, KIP-516).

Consumers read up to the high watermark. A batch with acks=all is below the high watermark when it is on disk. Other
batches are below it at once, unless an earlier batch still waits for its fdatasync.

The broker responds at once if the response has `min_bytes`, is full, contains an error, or if `max_wait_ms` is 0.
Otherwise it responds when enough bytes arrive or `max_wait_ms` expires. Records are sent from the segment files with
sendfile. A response contains only complete batches. The first batch is returned even if it exceeds the limits (KIP-74).
If `last_fetched_epoch` is set and the logs diverge, the response contains the diverging epoch (KIP-595).

Deviations:
- A request that creates a fetch session (KIP-227)
  Kafka: Creates the session.
  Headgate: Returns session id 0, so the client sends full requests.
- A request that continues a fetch session
  Kafka: Continues the session.
  Headgate: FETCH_SESSION_ID_NOT_FOUND
- A request of a follower (`replica_id` >= 0)
  Kafka: Handles it as replication.
  Headgate: Handles it like a consumer's request.
- A stored batch with a wrong checksum
  Kafka: Returns the batch; the client detects the error.
  Headgate: CORRUPT_MESSAGE
- Negative `max_bytes` or `partition_max_bytes`
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: Handles it as 0.
- An unknown isolation level
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: Handles it as read_uncommitted.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from headgate.broker.log.page_cache import ColdRead, cold_read_bytes_max
from headgate.broker.log.partition_log import OffsetOutOfRange
from headgate.broker.log.region import Region
from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import code_of
from headgate.broker.protocol.entities import milliseconds
from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.protocol.request_shapes import FetchPartition, FetchRequest, FetchTopic, RequestContext
from headgate.broker.requests.fetch_response import Diverged, FetchLayout, fetch_layout
from headgate.broker.requests.payload import Chunk, Payload
from headgate.broker.runtime.clock import Timer
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.topics import Partition, Topic
from headgate.wire.errors import CorruptBatch

API_KEY = 1
VERSIONS = range(4, 19)

TOPIC_IDS_SINCE_VERSION = 13

# How often one fetch waits for cold data, over all its partitions. It may wait for the lookup of the offset, for the
# lookup of the response's end, and for evicted data. After that, it reads without checking the page cache.
cold_rounds_max = 4


def handle(broker: Broker, context: RequestContext, request: FetchRequest) -> bytes | Payload | Deferred[Payload]:
    version = context.api_version
    shape = fetch_layout(version)
    if request.session_epoch > 0:
        return shape.refusal(ErrorCode.fetch_session_id_not_found)
    return _Fetch(broker, request, shape).start()


class AskedPartition(NamedTuple):
    """One partition of a Fetch request, with the fields of the newest version."""

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
    """Fast path for one partition: return the response if it contains records and is available at once, else None."""
    partition = _find(topic, asked.partition)
    if partition is None or offset == partition.log.high_watermark:
        return None
    budget = min(max_bytes, broker.settings.fetch_max_bytes)
    try:
        region = _read(partition, asked, offset, budget, at_least_one=True, wait=False)
    except (Refusal, Diverged, ColdRead):
        return None
    if region is None or region.length == 0:
        return None
    if region.length < min_bytes and not partition.log.has_more(region):
        return None
    return fetch_layout(version).alone(partition, isolation, region)


class _Fetch:
    """One Fetch request: its partitions and its long poll."""

    __slots__ = (
        "_answer",
        "_broker",
        "_cold",
        "_cold_rounds",
        "_missing_bytes",
        "_request",
        "_shape",
        "_timer",
        "_topics",
        "partitions",
    )

    def __init__(self, broker: Broker, request: FetchRequest, shape: "FetchLayout") -> None:
        self._broker = broker
        self._request = request
        self._shape = shape
        self._topics = _each_once(request.topics, by_id=shape.version >= TOPIC_IDS_SINCE_VERSION)
        self.partitions: list[Partition] = []
        self._missing_bytes = 0
        self._answer: Deferred[Payload] = Deferred()
        self._timer: Timer | None = None
        self._cold: list[ColdRead] = []
        self._cold_rounds = 0

    def start(self) -> Payload | Deferred[Payload]:
        """Return the response if it is complete or must not wait. Otherwise return a Deferred of it."""
        payload, found_bytes, answer_now = self.collect(wait=self._cold_rounds >= cold_rounds_max)
        if self._cold and self._load():
            return self._answer
        request = self._request
        wait_ms = milliseconds(request.max_wait)
        if answer_now or found_bytes >= request.min_bytes or wait_ms <= 0 or not self.partitions:
            return payload
        return self.wait(request.min_bytes - found_bytes, wait_ms)

    def _load(self) -> bool:
        """Let threads read the cold data. Returns False if its files cannot be opened."""
        self._cold_rounds += 1
        try:
            pending = self._broker.cold_reads.load(self._cold, self._loaded)
        except OSError:
            return False
        self._answer.on_abandon = pending.cancel
        return True

    def _loaded(self) -> None:
        outcome = self.start()
        if not isinstance(outcome, Deferred):
            self._answer.complete(outcome)

    def collect(self, *, wait: bool) -> tuple[Payload, int, bool]:
        """Build a response from the current data.

        Returns the response, its number of record bytes, and whether the broker must respond at once. If `wait` is
        False, `_cold` then contains the ranges that threads must read first.
        """
        request, shape = self._request, self._shape
        by_id = shape.version >= TOPIC_IDS_SINCE_VERSION
        topics = self._broker.topics
        isolation = request.isolation_level
        budget = min(request.max_bytes, self._broker.settings.fetch_max_bytes)
        found_bytes, answer_now = 0, False
        self._cold = []
        self.partitions = waiting = []
        chunks: list[Chunk] = []
        pieces: list[bytes] = [shape.response.head, shape.response.length(len(self._topics))]
        for wanted, asked_partitions in self._topics:
            topic = topics.find_by_id(wanted.topic_id) if by_id else topics.find(wanted.topic)
            pieces.append(shape.topic_head(topic, wanted.topic, wanted.topic_id))
            pieces.append(shape.topic_length(len(asked_partitions)))
            for asked in asked_partitions:
                partition = _find(topic, asked.partition)
                try:
                    if partition is None:
                        raise Refusal(_unknown(topic, by_id=by_id))
                    region = _read(
                        partition, asked, asked.fetch_offset, budget, at_least_one=found_bytes == 0, wait=wait
                    )
                except ColdRead as cold:
                    found_bytes += cold.length
                    budget -= cold.length
                    answer_now = True
                    self._cold.append(cold)
                    pieces.append(shape.failure(asked.partition, Refusal(ErrorCode.kafka_storage_error), partition))
                    continue
                except Refusal as refusal:
                    answer_now = True
                    pieces.append(shape.failure(asked.partition, refusal, partition))
                    continue
                except Diverged as parting:
                    answer_now = True
                    pieces.append(shape.diverging(parting))
                    continue
                waiting.append(partition)
                pieces.append(shape.success(partition, isolation))
                # Do not wait if the size limits excluded available records.
                if region is None:
                    answer_now = answer_now or asked.fetch_offset < partition.log.high_watermark
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
        # Before version 12, no bytes follow the records. An empty last chunk would leave MSG_MORE set on the records.
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
        # Zero bytes signal another event of the partition, for example its deletion.
        if self._missing_bytes <= 0 or arrived_bytes == 0:
            self._finish()

    def _finish(self) -> None:
        if self._answer.done:
            return
        self._stop_waiting()
        self._answer.complete(self.collect(wait=True)[0])

    def _stop_waiting(self) -> None:
        for partition in self.partitions:
            partition.waiters.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


def _each_once(topics: Iterable[FetchTopic], *, by_id: bool) -> list[tuple[FetchTopic, list[FetchPartition]]]:
    """Return the topics and their partitions without duplicates, as in Kafka.

    If a partition occurs twice, its last entry applies, at the position of its first entry. Adjacent entries of the
    same topic are merged.
    """
    partitions: dict[tuple[UUID | str | None, int], tuple[FetchTopic, FetchPartition]] = {}
    for wanted in topics:
        name = wanted.topic_id if by_id else wanted.topic
        for asked in wanted.partitions:
            partitions[name, asked.partition] = wanted, asked
    grouped: list[tuple[FetchTopic, list[FetchPartition]]] = []
    last: UUID | str | None = None
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
    partition: Partition,
    asked: FetchPartition | AskedPartition,
    offset: int,
    budget: int,
    *,
    at_least_one: bool,
    wait: bool,
) -> Region | None:
    log = partition.log
    epoch = asked.current_leader_epoch
    if epoch >= 0 and epoch != log.leader_epoch:
        fenced = epoch < log.leader_epoch
        raise Refusal(ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch)
    last_epoch = asked.last_fetched_epoch
    if last_epoch >= 0:
        _check_epoch(partition, last_epoch, offset)
    max_bytes = min(asked.partition_max_bytes, budget)
    if max_bytes <= 0 and not at_least_one:
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise Refusal(ErrorCode.offset_out_of_range)
        return None
    try:
        return log.read(offset, max(max_bytes, 0), at_least_one=at_least_one, wait=wait)
    except ColdRead as cold:
        # Read more than the lookup needs: the records of the response are probably cold, too.
        cold.length = max(cold.length, min(max_bytes, cold_read_bytes_max))
        raise
    except (OffsetOutOfRange, CorruptBatch, StorageError, OSError) as error:
        raise Refusal(code_of(error)) from None


def _check_epoch(partition: Partition, last_epoch: int, offset: int) -> None:
    epoch, end_offset = partition.log.end_offset_for_epoch(last_epoch)
    if epoch < 0 or offset < partition.log.log_start_offset:
        raise Refusal(ErrorCode.offset_out_of_range)
    if epoch < last_epoch or end_offset < offset:
        raise Diverged(partition, epoch, end_offset)
