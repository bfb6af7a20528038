"""LeaveGroup v0-5: Removes members from a group (v0-2: one member, v3+: several).

In v3+, administrators can remove a static member by its instance id alone.

Deviations:
- The last member leaves
  Kafka: Responds when the change is durable.
  Headgate: Responds at once. If the broker then crashes, it restores the members, and they expire after their session
  timeout.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import LeaveGroupRequest, RequestContext
from headgate.broker.state.groups.messages import MemberIdentity

API_KEY = 13
VERSIONS = range(6)

FIRST_BATCHED_VERSION = 3


def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest) -> Answer:
    if context.api_version < FIRST_BATCHED_VERSION:
        result = broker.groups.leave(request.group_id, [MemberIdentity(request.member_id, None)])
        errors = [result.error, *(error for _, error in result.members)]
        return {"error_code": next((error for error in errors if error is not ErrorCode.none), ErrorCode.none)}
    leaving = [MemberIdentity(each.member_id, each.group_instance_id) for each in request.members]
    result = broker.groups.leave(request.group_id, leaving)
    return {
        "error_code": result.error,
        "members": [
            {
                "member_id": identity.member_id,
                "group_instance_id": identity.group_instance_id,
                "error_code": error,
            }
            for identity, error in result.members
        ],
    }
