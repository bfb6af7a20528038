"""DeleteRecords v0-2: Advances the log start offset of partitions. Offset -1 means the high watermark.

Deleted records are never returned again. The disk space of deleted segments is free at once. The request never times
out.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.log.log_deletion import remove_deleted_tail
from headgate.broker.log.partition_log import OffsetOutOfRange
from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import code_of
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DeleteRecordsRequest, RequestContext
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.topics import Topic

API_KEY = 21
VERSIONS = range(3)


def handle(broker: Broker, context: RequestContext, request: DeleteRecordsRequest) -> Work[Answer]:
    # Merge duplicates: the last offset of a partition applies, and the response contains each topic once.
    offsets: dict[str, dict[int, int]] = {}
    for asked in request.topics:
        for partition in asked.partitions:
            offsets.setdefault(asked.name, {})[partition.partition_index] = partition.offset
    topics: list[dict[str, object]] = []
    for name, wanted in offsets.items():
        partitions = []
        for index, offset in wanted.items():
            yield
            partitions.append(_delete(broker, name, index, offset))
        topics.append({"name": name, "partitions": partitions})
    return {"topics": topics}


def _delete(broker: Broker, name: str, index: int, offset: int) -> dict[str, object]:
    code, low_watermark = _cut(broker, broker.topics.find(name), index, offset)
    return {"partition_index": index, "low_watermark": low_watermark, "error_code": code}


def _cut(broker: Broker, topic: Topic | None, index: int, offset: int) -> tuple[ErrorCode, int]:
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition, -1
    if topic.internal:
        return ErrorCode.invalid_topic_exception, -1
    # A topic with an empty `cleanup.policy` allows DeleteRecords, although retention deletes none of its records.
    if topic.settings.is_compacted and not topic.settings.deletes_old_segments:
        return ErrorCode.policy_violation, -1
    log = topic.partitions[index].log
    try:
        low_watermark = broker.reserve.use(lambda: log.delete_records(offset))
        broker.reserve.use(lambda: remove_deleted_tail(log, broker.clock.wall_ms()))
        return ErrorCode.none, low_watermark
    except (OffsetOutOfRange, StorageError) as error:
        return code_of(error), -1
