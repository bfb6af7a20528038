"""CreateTopics v2-7: Creates topics with partitions and configs, or only validates the request.

Each topic succeeds or fails independently. v5+ returns the configs of the topic (KIP-525), v7 its id. The response is
sent when the topic is on disk, so the request never times out.

Deviations:
- `cleanup.policy=compact`
  Kafka: Compacts the topic.
  Headgate: Accepts and stores the config, but keeps all records.
- Two names in one request that collide (`a.b` and `a_b`)
  Kafka: Creates both topics.
  Headgate: INVALID_TOPIC_EXCEPTION for the second topic.
- More partitions than `headgate.topic.partitions.max` in a topic or `headgate.partitions.max` in the broker
  Kafka: Creates the topic.
  Headgate: INVALID_PARTITIONS
"""

import uuid
from collections import Counter
from collections.abc import Generator, Iterable

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.node.topic_creation import REQUEST_PARTITIONS_MAX, TopicCreation
from headgate.broker.protocol.outcomes import Answer, Refusal, clipped
from headgate.broker.protocol.request_shapes import CreatableTopic, CreateTopicsRequest, RequestContext
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.assignments import InvalidAssignment, partition_count_of
from headgate.broker.state.configs.describing import topic_entries
from headgate.broker.state.configs.effective import check_topic_overrides
from headgate.broker.state.configs.values import InvalidConfig

API_KEY = 19
VERSIONS = range(2, 8)
IS_EXCLUSIVE = True


def handle(broker: Broker, context: RequestContext, request: CreateTopicsRequest) -> Work[Answer]:
    times = Counter(topic.name for topic in request.topics)
    distinct = {topic.name: topic for topic in request.topics}
    excessive = _partitions_asked(broker, distinct.values()) > REQUEST_PARTITIONS_MAX
    creation = TopicCreation(broker)
    answers: list[dict[str, object]] = []
    for name, topic in distinct.items():
        yield
        try:
            if times[name] > 1:
                raise Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
            if excessive:
                raise Refusal(ErrorCode.policy_violation, "Excessively large number of partitions per request.")
            answer = yield from _creating(broker, creation, topic, validate_only=request.validate_only)
            answers.append(answer)
        except Refusal as refusal:
            answers.append(
                {
                    "name": name,
                    "error_code": refusal.code,
                    "error_message": clipped(refusal.message),
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "configs": (),
                }
            )
    return {"topics": answers}


def _partitions_asked(broker: Broker, topics: Iterable[CreatableTopic]) -> int:
    return sum(
        len(topic.assignments)
        or (broker.settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions)
        for topic in topics
    )


def _creating(
    broker: Broker, creation: TopicCreation, topic: CreatableTopic, *, validate_only: bool
) -> Generator[None, None, dict[str, object]]:
    name = topic.name
    creation.check_name(name)
    overrides = _checked_configs(broker, topic)
    partition_count = _checked_partition_count(broker, topic)
    if validate_only:
        creation.take(already=0, total=partition_count)
        creation.reserve(name)
        # As in Kafka, the response contains a topic id even if `validate_only` is set.
        topic_id = uuid.uuid4()
    else:
        topic_id = (yield from creation.creating(name, partition_count, overrides)).topic_id
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": ErrorCode.none,
        "error_message": None,
        "num_partitions": partition_count,
        "replication_factor": 1,
        "configs": [
            {
                "name": entry.definition.name,
                # Return the value as sent, including whitespace. DescribeConfigs normalizes it.
                "value": overrides.get(entry.definition.name, entry.value),
                "read_only": entry.read_only,
                "config_source": entry.source.value,
                "is_sensitive": False,
            }
            for entry in topic_entries(broker.settings, overrides)
        ],
    }


def _checked_configs(broker: Broker, topic: CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise Refusal(ErrorCode.invalid_config, f"Null value not supported for topic configs: {','.join(nulls)}")
    # If the request contains a config twice, the last value applies.
    overrides = {config.name: config.value for config in topic.configs if config.value is not None}
    try:
        check_topic_overrides(broker.settings.values, overrides)
    except InvalidConfig as error:
        raise refusal_of(error) from error
    return overrides


def _checked_partition_count(broker: Broker, topic: CreatableTopic) -> int:
    if topic.assignments:
        for field, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
            if value != -1:
                raise Refusal(
                    ErrorCode.invalid_request,
                    f"A manual partition assignment was specified, but {field} was not set to -1.",
                )
        try:
            count = partition_count_of(
                [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
                frozenset({broker.node_id}),
            )
        except InvalidAssignment as error:
            raise refusal_of(error) from error
    else:
        count = _unassigned_count(broker, topic.num_partitions, topic.replication_factor)
    return count


def _unassigned_count(broker: Broker, num_partitions: int, replication_factor: int) -> int:
    if replication_factor < -1 or replication_factor == 0:
        raise Refusal(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if num_partitions < -1 or num_partitions == 0:
        raise Refusal(ErrorCode.invalid_partitions, "Number of partitions was set to an invalid non-positive value.")
    replicas = broker.settings.default_replication_factor if replication_factor == -1 else replication_factor
    if replicas > 1:
        raise Refusal(
            ErrorCode.invalid_replication_factor,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} "
            "cannot be reached because only 1 broker(s) are registered.",
        )
    return broker.settings.num_partitions if num_partitions == -1 else num_partitions
