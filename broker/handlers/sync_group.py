"""SyncGroup v0-5: Takes the leader's assignment and returns each member's part of it.

All responses wait until the generation is durable. In v5+, the protocol type and name are required and must match the
group.

Deviations:
- A member is removed while its request waits
  Kafka: Never responds.
  Headgate: UNKNOWN_MEMBER_ID
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import RequestContext, SyncGroupRequest
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import SyncRequest, SyncResult

API_KEY = 14
VERSIONS = range(6)

FIRST_VERSION_WITH_PROTOCOL = 5


def handle(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> Answer | Deferred[Answer]:
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
        return render(SyncResult(ErrorCode.inconsistent_group_protocol))
    sync = SyncRequest(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
    )
    return broker.groups.sync(sync).map(render)


def render(result: SyncResult) -> Answer:
    return {
        "error_code": result.error,
        "protocol_type": result.protocol_type,
        "protocol_name": result.protocol_name,
        "assignment": result.assignment,
    }
