"""CreatePartitions v0-3: Adds partitions to topics, or only validates the request.

Each topic succeeds or fails independently. The response is sent when the partitions are on disk, so the request never
times out.

Deviations:
- More partitions than `headgate.topic.partitions.max` in a topic or `headgate.partitions.max` in the broker
  Kafka: Adds the partitions.
  Headgate: INVALID_PARTITIONS
- More than 10,000 new partitions in one request
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: POLICY_VIOLATION
"""

from collections import Counter
from collections.abc import Generator

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.node.topic_creation import TopicCreation
from headgate.broker.protocol.outcomes import Answer, Refusal, clipped
from headgate.broker.protocol.request_shapes import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    RequestContext,
)
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.assignments import InvalidAssignment, check_replicas

API_KEY = 37
VERSIONS = range(4)
IS_EXCLUSIVE = True


def handle(broker: Broker, context: RequestContext, request: CreatePartitionsRequest) -> Work[Answer]:
    times = Counter(topic.name for topic in request.topics)
    distinct = {topic.name: topic for topic in request.topics}
    creation = TopicCreation(broker)
    answers: list[dict[str, object]] = []
    for name, asked in distinct.items():
        yield
        code, message = ErrorCode.none, None
        try:
            if times[name] > 1:
                raise Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
            yield from _growing(broker, creation, asked, validate_only=request.validate_only)
        except Refusal as refusal:
            code, message = refusal.code, clipped(refusal.message)
        answers.append({"name": name, "error_code": code, "error_message": message})
    return {"results": answers}


def _growing(
    broker: Broker, creation: TopicCreation, asked: CreatePartitionsTopic, *, validate_only: bool
) -> Generator[None, None, None]:
    topic = broker.topics.find(asked.name)
    if topic is None:
        raise Refusal(ErrorCode.unknown_topic_or_partition, None)
    already = len(topic.partitions)
    if asked.count == already:
        raise Refusal(ErrorCode.invalid_partitions, f"Topic already has {already} partition(s).")
    if asked.count < already:
        raise Refusal(
            ErrorCode.invalid_partitions,
            f"The topic {topic.name} currently has {already} partition(s); {asked.count} would not be an increase.",
        )
    if asked.assignments is not None:
        _check_assignments(broker, asked.assignments, asked.count - already)
    if validate_only:
        creation.take(already=already, total=asked.count)
    else:
        yield from creation.adding_partitions(topic, asked.count)


def _check_assignments(broker: Broker, assignments: tuple[CreatePartitionsAssignment, ...], new: int) -> None:
    if len(assignments) != new:
        raise Refusal(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {new} additional partition(s), but only {len(assignments)} assignment(s) "
            "were specified.",
        )
    try:
        for assignment in assignments:
            check_replicas(assignment.broker_ids, frozenset({broker.node_id}))
    except InvalidAssignment as error:
        raise refusal_of(error) from error
