"""ListOffsets v1-11: Finds offsets by timestamp, including earliest, latest and maximum timestamp (KIP-734).

Special timestamps: -1 latest, -2 earliest, -3 maximum timestamp (v7+), -4 earliest local (v8+), -5 latest tiered (v9+),
-6 earliest pending upload (v11+). Without tiered storage, -4 returns the earliest offset, and -5 and -6 return -1.

Deviations:
- A timestamp inside a batch with more than 50,000 records or 16 MiB decompressed, or inside an unreadable batch
  Kafka: Searches the records of the batch.
  Headgate: Returns the first offset of the batch.
- Maximum timestamp, after DeleteRecords deleted this record
  Kafka: Returns the deleted record.
  Headgate: Returns the log start offset.
- An unknown isolation level
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: Handles it as read_uncommitted.
"""

from collections import Counter
from functools import partial

from kio.schema.errors import ErrorCode

from headgate.broker.log.page_cache import ColdRead
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.time_search import Found, Searched, UnsearchedBatch
from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import code_of
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import ListOffsetsPartition, ListOffsetsRequest, RequestContext
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import WaitingWork
from headgate.wire.errors import InvalidBatch

API_KEY = 2
VERSIONS = range(1, 12)

LATEST, EARLIEST, LARGEST_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NEVER = 1_000

# Reads of cold data per lookup. After that, the lookup blocks on the disk, so it ends even if pages are evicted.
cold_rounds_max = 16

_SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN = {"timestamp": -1, "offset": -1, "leader_epoch": -1}


def handle(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> WaitingWork[Answer]:
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    # The response contains each topic once.
    topics: dict[str, dict[int, Answer]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            yield None
            index = asked.partition_index
            answers = topics.setdefault(topic.name, {})
            if times[topic.name, index] > 1:
                answers[index] = {"partition_index": index, "error_code": ErrorCode.invalid_request, **_UNKNOWN}
            else:
                answer = yield from _answer(broker, context, topic.name, asked)
                answers[index] = {"partition_index": index, **answer}
    return {"topics": [{"name": name, "partitions": tuple(answers.values())} for name, answers in topics.items()]}


def _answer(broker: Broker, context: RequestContext, name: str, asked: ListOffsetsPartition) -> WaitingWork[Answer]:
    """Look up one partition. Let a thread read cold data and search large batches, then start the lookup again."""
    searched: Searched = {}
    cold_rounds = 0
    while True:
        try:
            return _answer_now(broker, context, name, asked, searched, wait=cold_rounds >= cold_rounds_max)
        except ColdRead as cold:
            cold_rounds += 1
            loaded: Deferred[None] = Deferred()
            try:
                broker.cold_reads.load((cold,), partial(loaded.complete, None))
            except OSError:
                cold_rounds = cold_rounds_max
                continue
            yield loaded
        except UnsearchedBatch as unsearched:
            search = unsearched.search
            yield broker.record_checks.run(search.run).map(partial(searched.__setitem__, search))


def _answer_now(
    broker: Broker,
    context: RequestContext,
    name: str,
    asked: ListOffsetsPartition,
    searched: Searched,
    *,
    wait: bool,
) -> Answer:
    """Look up one partition. Raises UnsearchedBatch. Without `wait`, raises ColdRead."""
    if asked.timestamp < 0 and context.api_version < _SINCE_VERSION.get(asked.timestamp, NEVER):
        return {"error_code": ErrorCode.unsupported_version, **_UNKNOWN}
    topic = broker.topics.find(name)
    if topic is None or not 0 <= asked.partition_index < len(topic.partitions):
        return {"error_code": ErrorCode.unknown_topic_or_partition, **_UNKNOWN}
    log = topic.partitions[asked.partition_index].log
    epoch = asked.current_leader_epoch
    if epoch not in (-1, log.leader_epoch):
        fenced = epoch < log.leader_epoch
        return {"error_code": ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch, **_UNKNOWN}
    try:
        found = _find(log, asked.timestamp, searched, wait=wait)
    except InvalidBatch:
        return {"error_code": ErrorCode.corrupt_message, **_UNKNOWN}
    except (StorageError, OSError) as error:
        return {"error_code": code_of(error), **_UNKNOWN}
    if found is None:
        return {"error_code": ErrorCode.none, **_UNKNOWN}
    offset, timestamp = found
    return {
        "error_code": ErrorCode.none,
        "timestamp": timestamp,
        "offset": offset,
        "leader_epoch": log.epoch_of(offset),
    }


def _find(log: PartitionLog, timestamp: int, searched: Searched, *, wait: bool) -> Found:
    """Return the offset and its timestamp, or None."""
    if timestamp == LATEST:
        return log.high_watermark, -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1
    if timestamp == LARGEST_TIMESTAMP:
        return log.offset_of_largest_timestamp(wait=wait, searched=searched)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    return log.offset_for_timestamp(timestamp, wait=wait, searched=searched)
