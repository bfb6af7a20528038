"""DescribeGroups v0-6: Returns the state, protocol and members of groups.

Member metadata is returned only for stable groups. An unknown group has the state Dead; v6+ also returns
GROUP_ID_NOT_FOUND. There is no authorizer, so all operations are authorized.

Deviations:
- A group that occurs twice
  Kafka: Describes it twice.
  Headgate: Describes it once, because a short request could cause a very large response.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DescribeGroupsRequest, RequestContext

API_KEY = 15
VERSIONS = range(7)

FIRST_VERSION_WITH_NOT_FOUND = 6
NOT_ASKED = -0x80000000
ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: all operations of a group in Kafka."""


def handle(broker: Broker, context: RequestContext, request: DescribeGroupsRequest) -> Answer:
    is_told_of_missing_groups = context.api_version >= FIRST_VERSION_WITH_NOT_FOUND
    operations = ALL_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return {
        "groups": [
            _describe(broker, group_id, is_told_of_missing_groups, operations)
            for group_id in dict.fromkeys(request.groups)
        ]
    }


def _describe(broker: Broker, group_id: str, is_told_of_missing_groups: bool, operations: int) -> Answer:
    group = broker.groups.describe(group_id)
    if group is None:
        missing = {"group_id": group_id, "group_state": "Dead", "authorized_operations": operations}
        if not is_told_of_missing_groups:
            return missing
        return {
            **missing,
            "error_code": ErrorCode.group_id_not_found,
            "error_message": f"Group {group_id} not found.",
            "authorized_operations": NOT_ASKED,
        }
    return {
        "group_id": group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in group.members
        ],
        "authorized_operations": operations,
    }
