"""OffsetFetch v1-10: Returns the committed offsets of groups, for some or all partitions (topic ids from v10).

- A partition without a committed offset gets -1 and no error, even if the group or topic does not exist.
- `require_stable` (v7+) waits for pending commits.
- v8+ accepts several groups.
- The member id and epoch of v9+ apply only to groups of KIP-848, which do not exist here.
- In v10, an unknown topic id gets UNKNOWN_TOPIC_ID. Null returns only topics that still exist.

Deviations:
- A group that occurs twice, each time with all partitions (null)
  Kafka: Returns the offsets twice.
  Headgate: Returns the offsets once, because a short request could cause a very large response.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
    RequestContext,
)
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.offsets import OffsetsByTopic
from headgate.broker.state.groups.records import CommittedOffset

API_KEY = 9
VERSIONS = range(1, 11)

FIRST_BATCHED_VERSION = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(broker: Broker, context: RequestContext, request: OffsetFetchRequest) -> Deferred[Answer]:
    require_stable = request.require_stable
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS

    def fetch(group: OffsetFetchGroup) -> Deferred[Answer]:
        return broker.groups.fetch_offsets(group.group_id, require_stable).map(
            lambda offsets: {
                "group_id": group.group_id,
                "topics": _asked(broker, by_id, group.topics, offsets)
                if group.topics is not None
                else _all(broker, by_id, offsets),
            }
        )

    if context.api_version < FIRST_BATCHED_VERSION:
        return fetch(request)
    return _gather([fetch(group) for group in _without_repetition(request.groups)]).map(
        lambda answers: {"groups": answers}
    )


def _without_repetition(groups: Sequence[OffsetFetchGroup]) -> list[OffsetFetchGroup]:
    everything = {group.group_id: group for group in reversed(groups) if group.topics is None}
    return [group for group in groups if group.topics is not None or everything[group.group_id] is group]


def _asked(broker: Broker, by_id: bool, topics: Sequence[OffsetFetchTopic], offsets: OffsetsByTopic) -> list[Answer]:
    answers: list[Answer] = []
    for asked in topics:
        topic = broker.topics.find_by_id(asked.topic_id) if by_id else None
        is_unknown_id = by_id and topic is None
        name = topic.name if topic is not None else asked.name
        error = ErrorCode.unknown_topic_id if is_unknown_id else ErrorCode.none
        named: dict[str, object] = {"topic_id": asked.topic_id} if by_id else {"name": name}
        committed = offsets.get(name, {})
        partitions = [
            _partition(index, None if is_unknown_id else committed.get(index), error)
            for index in asked.partition_indexes
        ]
        answers.append({**named, "partitions": partitions})
    return answers


def _all(broker: Broker, by_id: bool, offsets: OffsetsByTopic) -> list[Answer]:
    answers: list[Answer] = []
    for name, committed in offsets.items():
        named: dict[str, str | UUID] = {"name": name}
        if by_id:
            topic = broker.topics.find(name)
            if topic is None:
                continue
            named = {"topic_id": topic.topic_id}
        partitions = [_partition(index, value, ErrorCode.none) for index, value in committed.items()]
        answers.append({**named, "partitions": partitions})
    return answers


def _partition(index: int, committed: CommittedOffset | None, error: ErrorCode) -> Answer:
    return {
        "partition_index": index,
        "committed_offset": committed.offset if committed is not None else -1,
        "committed_leader_epoch": committed.leader_epoch if committed is not None else -1,
        "metadata": committed.metadata if committed is not None else "",
        "error_code": error,
    }


def _gather(waiting: Sequence[Deferred[Answer]]) -> Deferred[Sequence[Answer]]:
    """Complete with all answers, in the order of the requested groups, when the last answer is available."""
    gathered: Deferred[Sequence[Answer]] = Deferred()
    answers: dict[int, Answer] = {}

    def collect(index: int, answer: Answer) -> None:
        answers[index] = answer
        if len(answers) == len(waiting):
            gathered.complete([answers[each] for each in range(len(waiting))])

    if not waiting:
        gathered.complete([])
    for index, deferred in enumerate(waiting):
        deferred.then(partial(collect, index))
    return gathered
