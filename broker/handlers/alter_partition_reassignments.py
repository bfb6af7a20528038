"""AlterPartitionReassignments v0-1: Accepts only the current replica, because there is one broker."""

from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import AlterPartitionReassignmentsRequest, RequestContext
from headgate.broker.runtime.time_slicing import Work

API_KEY = 45
VERSIONS = range(2)


def handle(broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest) -> Work[Answer]:
    responses: list[Answer] = []
    for asked in request.topics:
        partitions: list[Answer] = []
        for partition in asked.partitions:
            yield
            code, message = _judge(broker, asked.name, partition.partition_index, partition.replicas)
            index = partition.partition_index
            partitions.append({"partition_index": index, "error_code": code, "error_message": message})
        responses.append({"name": asked.name, "partitions": partitions})
    return {
        # If the request contains no topics, Kafka ignores this field of the request.
        "allow_replication_factor_change": not request.topics or request.allow_replication_factor_change,
        "error_code": ErrorCode.none,
        "error_message": None,
        "responses": responses,
    }


# Messages omit the topic name: a small request can list many partitions of a topic with a long name.
def _judge(broker: Broker, name: str, index: int, replicas: Sequence[int] | None) -> tuple[ErrorCode, str | None]:
    topic = broker.topics.find(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition, "There is no such partition."
    if replicas is None:
        return ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress."
    if tuple(replicas) == (broker.node_id,):
        return ErrorCode.none, None
    return (
        ErrorCode.invalid_replica_assignment,
        f"The partition cannot be elsewhere: broker {broker.node_id} is the only one.",
    )
