"""LeaveGroup, versions 0 to 5: members go, one each up to version 2, several from version 3 on.

From version 3 on a static member can be named by its instance id alone, which is how administrators remove it.

Deviations from Kafka: the answer does not wait for the journal when the last member goes. After a crash the members
would come back and run into their session timeouts. More than 100,000 members in one request are INVALID_REQUEST.
"""

from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.entities import Answer, Request
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.requests.item_limits import REQUEST_ITEMS_MAX
from headgate.broker.state.groups.messages import MemberIdentity

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

API_KEY = 13
VERSIONS = range(6)

FIRST_BATCHED_VERSION = 3


def handle(broker: "Broker", context: RequestContext, request: Request) -> Answer:
    if context.api_version < FIRST_BATCHED_VERSION:
        result = broker.groups.leave(request.group_id, [MemberIdentity(request.member_id, None)])
        errors = [result.error, *(error for _, error in result.members)]
        return {"error_code": next((error for error in errors if error is not ErrorCode.none), ErrorCode.none)}
    if len(request.members) > REQUEST_ITEMS_MAX:
        return {"error_code": ErrorCode.invalid_request}
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
