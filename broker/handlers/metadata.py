"""Metadata v0-13: Returns the brokers, and topics with their partitions (KIP-4, topic ids from v10, KIP-516).

An unknown topic is created if both the request and `auto.create.topics.enable` allow it. All topics are selected by an
empty list in v0, and by null in later versions.

Deviations:
- Leaders, replicas and ISR
  Kafka: Several brokers.
  Headgate: Always the one broker.
- A topic that the request creates
  Kafka: LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION until the topic is ready.
  Headgate: Returns the new topic.
- More than 100 unknown topics in one request, with automatic topic creation
  Kafka: Creates all topics.
  Headgate: Creates 100 topics. The others get LEADER_NOT_AVAILABLE, and clients retry.
- A topic with neither name nor id
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: UNKNOWN_TOPIC_ID
- Partitions of `__consumer_offsets`
  Kafka: 50
  Headgate: 1
"""

from collections.abc import Iterable, Mapping

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.topic_creation import TopicCreation
from headgate.broker.protocol.outcomes import Answer, Refusal
from headgate.broker.protocol.request_shapes import MetadataRequest, MetadataRequestTopic, RequestContext
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, UNASKED_OPERATIONS
from headgate.broker.state.topic_names import INTERNAL_TOPICS, topic_name_fault
from headgate.broker.state.topics import Topic

API_KEY = 3
VERSIONS = range(14)
IS_EXCLUSIVE = True

IDS_SINCE_VERSION = 12


def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> Answer | Work[Answer]:
    asked = request.topics or ()
    if context.api_version < IDS_SINCE_VERSION and any(_uses_id(wanted) for wanted in asked):
        return _refused(asked)
    missing = _missing_names(broker, request)
    if missing:
        return _create_then_answer(broker, context, request, missing)
    return _answer(broker, context, request, {})


def _missing_names(broker: Broker, request: MetadataRequest) -> list[str]:
    """Return the names of missing topics that the broker may create."""
    asked = request.topics
    if not asked or not request.allow_auto_topic_creation:
        return []
    if not broker.settings.auto_create_topics_enable or any(_uses_id(wanted) for wanted in asked):
        return []
    find = broker.topics.find
    return list(dict.fromkeys(wanted.name for wanted in asked if wanted.name is not None and find(wanted.name) is None))


def _create_then_answer(
    broker: Broker, context: RequestContext, request: MetadataRequest, names: list[str]
) -> Work[Answer]:
    creation = TopicCreation(broker)
    refused: dict[str, ErrorCode] = {}
    for name in names:
        yield
        # Look up the topic late: another request may have created it.
        if broker.topics.find(name) is None and topic_name_fault(name) is None:
            try:
                yield from creation.auto_creating(name)
            except Refusal as refusal:
                refused[name] = refusal.code
    return _answer(broker, context, request, refused)


def _answer(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: Mapping[str, ErrorCode]
) -> Answer:
    """Build the response from the current state. `refused` contains the errors of failed topic creations."""
    host, port = broker.advertised()
    cluster_operations = request.include_cluster_authorized_operations
    return {
        "brokers": ({"node_id": broker.node_id, "host": host, "port": port, "rack": broker.settings.broker_rack},),
        "cluster_id": broker.cluster_id,
        "controller_id": broker.node_id,
        "topics": tuple(_with_operations(_topics(broker, context, request, refused), request)),
        "cluster_authorized_operations": CLUSTER_OPERATIONS if cluster_operations else UNASKED_OPERATIONS,
    }


def _uses_id(wanted: MetadataRequestTopic) -> bool:
    return wanted.name is None or wanted.topic_id is not None


def _refused(asked: Iterable[MetadataRequestTopic]) -> Answer:
    """Refuse every topic. Versions 10 and 11 have the field `topic_id`, but do not support lookups by topic id."""
    return {
        "brokers": (),
        "cluster_id": None,
        "controller_id": -1,
        "topics": [
            {
                "error_code": ErrorCode.invalid_request,
                "name": wanted.name or "",
                "topic_id": wanted.topic_id,
                "topic_authorized_operations": UNASKED_OPERATIONS,
            }
            for wanted in asked
        ],
        "cluster_authorized_operations": UNASKED_OPERATIONS,
    }


def _with_operations(topics: Iterable[Answer], request: MetadataRequest) -> Iterable[Answer]:
    if not request.include_topic_authorized_operations:
        return topics
    return (
        {**topic, "topic_authorized_operations": TOPIC_OPERATIONS} if topic["name"] is not None else topic
        for topic in topics
    )


def _topics(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: Mapping[str, ErrorCode]
) -> Iterable[Answer]:
    asked = request.topics
    if asked is None or (context.api_version == 0 and not asked):
        for topic in sorted(broker.topics.all(), key=lambda topic: topic.name):
            yield _describe(broker, topic)
        return
    seen: set[object] = set()
    by_id = any(wanted.topic_id is not None for wanted in asked)
    for wanted in asked:
        topic_id = wanted.topic_id
        if by_id and topic_id is None:
            # As in Kafka, if any topic has an id, topics without an id are ignored.
            continue
        identity = wanted.name if topic_id is None else topic_id
        if identity in seen:
            continue
        seen.add(identity)
        if by_id or wanted.name is None:
            found = broker.topics.find_by_id(topic_id)
            if found is None:
                yield {"error_code": ErrorCode.unknown_topic_id, "name": None, "topic_id": topic_id, "partitions": ()}
            else:
                yield _describe(broker, found)
            continue
        yield _by_name(broker, wanted.name, refused)


def _by_name(broker: Broker, name: str, refused: Mapping[str, ErrorCode]) -> Answer:
    found = broker.topics.find(name)
    if found is not None:
        return _describe(broker, found)
    if topic_name_fault(name) is not None:
        error = ErrorCode.invalid_topic_exception
    else:
        error = refused.get(name, ErrorCode.unknown_topic_or_partition)
    return {"error_code": error, "name": name, "is_internal": name in INTERNAL_TOPICS, "partitions": ()}


def _describe(broker: Broker, topic: Topic) -> Answer:
    node = (broker.node_id,)
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": tuple(
            {
                "error_code": ErrorCode.none,
                "partition_index": partition.index,
                "leader_id": broker.node_id,
                "leader_epoch": partition.leader_epoch,
                "replica_nodes": node,
                "isr_nodes": node,
                "offline_replicas": (),
            }
            for partition in topic.partitions
        ),
    }
