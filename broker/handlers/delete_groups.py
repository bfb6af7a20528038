"""DeleteGroups v0-2: Deletes groups without members, and their offsets. Duplicate groups are deleted once."""

from functools import partial

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DeleteGroupsRequest, RequestContext
from headgate.broker.runtime.deferred import Deferred

API_KEY = 42
VERSIONS = range(3)


def handle(broker: Broker, context: RequestContext, request: DeleteGroupsRequest) -> Deferred[Answer]:
    answer: Deferred[Answer] = Deferred()
    group_ids = list(dict.fromkeys(request.groups_names))
    results: dict[str, ErrorCode] = {}

    def collect(group_id: str, error: ErrorCode) -> None:
        results[group_id] = error
        if len(results) == len(group_ids):
            answer.complete({"results": [{"group_id": each, "error_code": results[each]} for each in group_ids]})

    if not group_ids:
        answer.complete({"results": []})
    for group_id in group_ids:
        broker.groups.delete(group_id).then(partial(collect, group_id))
    return answer
