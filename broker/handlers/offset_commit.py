"""OffsetCommit v2-10: Stores the committed offsets of a group with their metadata (topic ids from v10).

The response is sent when the offsets are durable. Members send their generation. Without a generation (-1), any client
may commit offsets if the group has no members. In v2-4, a request may set its own retention time.

Deviations:
- A partition that occurs twice
  Kafka: Handles each entry separately.
  Headgate: Commits the last entry and returns its result for both.
- A commit of which nothing is stored, because the metadata is too large
  Kafka: Creates an empty group with the next write to the same partition of `__consumer_offsets`.
  Headgate: Creates no group.
"""

from collections.abc import Mapping, Sequence

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import milliseconds
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import OffsetCommitRequest, RequestContext
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import CommitRequest, PartitionCommit

API_KEY = 8
VERSIONS = range(2, 11)

FIRST_VERSION_OF_KIP_848 = 9
FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(broker: Broker, context: RequestContext, request: OffsetCommitRequest) -> Answer | Deferred[Answer]:
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    topics = [
        broker.topics.find_by_id(topic.topic_id) if by_id else broker.topics.find(topic.name)
        for topic in request.topics
    ]
    commits = {
        (topic.name, partition.partition_index): PartitionCommit(
            topic=topic.name,
            partition=partition.partition_index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
        )
        for asked, topic in zip(request.topics, topics, strict=True)
        if topic is not None
        for partition in asked.partitions
        if 0 <= partition.partition_index < len(topic.partitions)
    }
    no_topic = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition

    def render(results: Mapping[tuple[str, int], ErrorCode]) -> Answer:
        answers = []
        for asked, topic in zip(request.topics, topics, strict=True):
            if topic is not None and not asked.partitions:
                # As in Kafka, the response omits an existing topic without partitions.
                continue
            partitions = []
            for partition in asked.partitions:
                index = partition.partition_index
                error = no_topic
                if topic is not None:
                    error = results.get((topic.name, index), ErrorCode.unknown_topic_or_partition)
                partitions.append({"partition_index": index, "error_code": error})
            named = {"topic_id": asked.topic_id} if by_id else {"name": asked.name}
            answers.append({**named, "partitions": partitions})
        return {"topics": answers}

    if not commits:
        # As in Kafka, the group is not checked if there is no offset to commit.
        return render({})
    return broker.groups.commit(commit_request(context, request, list(commits.values()))).map(render)


def commit_request(
    context: RequestContext, request: OffsetCommitRequest, partitions: Sequence[PartitionCommit]
) -> CommitRequest:
    retention_ms = milliseconds(request.retention_time)
    return CommitRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        retention_ms=retention_ms if retention_ms != -1 else None,
        unknown_group_error=(
            ErrorCode.group_id_not_found
            if context.api_version >= FIRST_VERSION_OF_KIP_848
            else ErrorCode.illegal_generation
        ),
        partitions=partitions,
    )
