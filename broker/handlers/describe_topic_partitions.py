"""DescribeTopicPartitions v0: Returns topics and partitions in pages with a cursor (KIP-966).

Topics are sorted by name. No names select all topics. The client's limit and `max.request.partition.size.limit` limit
the partitions of a page. The cursor is the start of the next page.

Deviations:
- An empty topic name
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: INVALID_TOPIC_EXCEPTION
"""

from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DescribeTopicPartitionsRequest, RequestContext
from headgate.broker.state.operations import TOPIC_OPERATIONS, UNASKED_OPERATIONS
from headgate.broker.state.topic_names import topic_name_fault
from headgate.broker.state.topics import Partition

API_KEY = 75
VERSIONS = range(1)


def handle(broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest) -> Answer:
    cursor = request.cursor
    names: Iterable[str] = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return {"topics": [_refused(topic.name) for topic in request.topics], "next_cursor": None}
    if not names:
        names = (topic.name for topic in broker.topics.all())
    if cursor is not None:
        names = (name for name in names if name >= cursor.topic_name)
    left = max(1, min(request.response_partition_limit, broker.settings.max_request_partition_size_limit))
    topics: list[dict[str, object]] = []
    for name in sorted(names):
        if left == 0:
            return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": 0}}
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        answer, described, remaining = _describe(broker, name, start, left)
        topics.append(answer)
        left -= described
        if remaining:
            next_cursor = {"topic_name": name, "partition_index": start + described}
            return {"topics": topics, "next_cursor": next_cursor}
    return {"topics": topics, "next_cursor": None}


def _describe(broker: Broker, name: str, start: int, limit: int) -> tuple[dict[str, object], int, int]:
    """Return the topic, the number of described partitions, and the number of partitions left for the next page."""
    topic = broker.topics.find(name)
    if topic is None:
        faulty = topic_name_fault(name) is not None
        code = ErrorCode.invalid_topic_exception if faulty else ErrorCode.unknown_topic_or_partition
        return {"error_code": code, "name": name, "topic_authorized_operations": TOPIC_OPERATIONS}, 0, 0
    page = topic.partitions[start : start + limit]
    answer: dict[str, object] = {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": [_partition(broker.node_id, partition) for partition in page],
        "topic_authorized_operations": TOPIC_OPERATIONS,
    }
    return answer, len(page), max(0, len(topic.partitions) - start - len(page))


def _partition(node_id: int, partition: Partition) -> dict[str, object]:
    return {
        "error_code": ErrorCode.none,
        "partition_index": partition.index,
        "leader_id": node_id,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": (node_id,),
        "isr_nodes": (node_id,),
        "eligible_leader_replicas": (),
        "last_known_elr": (),
        "offline_replicas": (),
    }


def _refused(name: str) -> dict[str, object]:
    return {"error_code": ErrorCode.invalid_request, "name": name, "topic_authorized_operations": UNASKED_OPERATIONS}
