"""OffsetForLeaderEpoch v2-4: Returns the end offset of a leader epoch, so clients detect truncation (KIP-320).

The leader epoch increases each time the broker starts after a crash.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    RequestContext,
)

API_KEY = 23
VERSIONS = range(2, 5)


def handle(broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest) -> Answer:
    return {
        "topics": tuple(
            {
                "topic": topic.topic,
                "partitions": tuple(
                    {"partition": asked.partition, **_answer(broker, topic.topic, asked)} for asked in topic.partitions
                ),
            }
            for topic in request.topics
        )
    }


def _answer(broker: Broker, name: str, asked: OffsetForLeaderPartition) -> Answer:
    topic = broker.topics.find(name)
    if topic is None or not 0 <= asked.partition < len(topic.partitions):
        return {"error_code": ErrorCode.unknown_topic_or_partition, "leader_epoch": -1, "end_offset": -1}
    log = topic.partitions[asked.partition].log
    current = asked.current_leader_epoch
    if current not in (-1, log.leader_epoch):
        fenced = current < log.leader_epoch
        error = ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch
        return {"error_code": error, "leader_epoch": -1, "end_offset": -1}
    epoch, end_offset = log.end_offset_for_epoch(asked.leader_epoch)
    return {"error_code": ErrorCode.none, "leader_epoch": epoch, "end_offset": end_offset}
