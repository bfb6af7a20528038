"""DeleteTopics v1-6: Deletes topics by name (v6+: also by topic id).

Each topic succeeds or fails independently. The response is sent when the deletion is on disk. The files are removed
afterwards.

Deviations:
- `__consumer_offsets`
  Kafka: Deletes the topic and with it all committed offsets.
  Headgate: INVALID_REQUEST
"""

import uuid
from collections import Counter
from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.protocol.outcomes import Answer, Refusal, clipped
from headgate.broker.protocol.request_shapes import DeleteTopicsRequest, RequestContext
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.topics import Topic

API_KEY = 20
VERSIONS = range(1, 7)
IS_EXCLUSIVE = True

UNKNOWN_NAME = "This server does not host this topic-partition."
UNKNOWN_ID = "This server does not host this topic ID."


def handle(broker: Broker, context: RequestContext, request: DeleteTopicsRequest) -> Work[Answer]:
    asked = list(_asked(request))
    names = Counter(name for name, _ in asked if name is not None)
    ids = Counter(topic_id for name, topic_id in asked if name is None and topic_id is not None)
    answers: list[dict[str, object]] = []
    for name, topic_id in dict.fromkeys(asked):
        yield
        answer: dict[str, object] = {"name": name, "topic_id": topic_id}
        code, message = ErrorCode.none, None
        try:
            topic = _find(broker, name, topic_id, names, ids)
            if topic.topic_id in ids and name is not None:
                answer["topic_id"] = topic.topic_id
                raise Refusal(
                    ErrorCode.invalid_request, "The provided topic name maps to an ID that was already supplied."
                )
            if name is None and topic.name in names:
                # The request also contains the topic's name. The response contains the topic once, under its name.
                continue
            _delete(broker, topic)
            answer = {"name": topic.name, "topic_id": topic.topic_id}
        except Refusal as refusal:
            code, message = refusal.code, clipped(refusal.message)
        answers.append({**answer, "error_code": code, "error_message": message})
    return {"responses": answers}


def _asked(request: DeleteTopicsRequest) -> Iterator[tuple[str | None, uuid.UUID | None]]:
    for name in request.topic_names:
        yield name, None
    for topic in request.topics:
        yield topic.name, topic.topic_id


def _find(
    broker: Broker,
    name: str | None,
    topic_id: uuid.UUID | None,
    names: Counter[str],
    ids: Counter[uuid.UUID],
) -> Topic:
    if name is not None and topic_id is not None:
        raise Refusal(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if name is not None:
        if names[name] > 1:
            raise Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
        topic = broker.topics.find(name)
        if topic is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, UNKNOWN_NAME)
        return topic
    if topic_id is None:
        raise Refusal(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if ids[topic_id] > 1:
        raise Refusal(ErrorCode.invalid_request, "Duplicate topic id.")
    topic = broker.topics.find_by_id(topic_id)
    if topic is None:
        raise Refusal(ErrorCode.unknown_topic_id, UNKNOWN_ID)
    return topic


def _delete(broker: Broker, topic: Topic) -> None:
    if topic.internal:
        raise Refusal(ErrorCode.invalid_request, f"{topic.name} holds the broker's own state and cannot be deleted.")
    if not broker.settings.delete_topic_enable:
        raise Refusal(ErrorCode.topic_deletion_disabled, "Topic deletion is disabled.")
    try:
        broker.delete_topic(topic)
    except StorageError as error:
        raise refusal_of(error) from error
