"""ListGroups v0-5: Lists groups, optionally filtered by state (v4+) and type (v5+).

Filters ignore case, and an unknown value matches no group, as in Kafka. All groups have the type `classic`.
"""

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import ListGroupsRequest, RequestContext

API_KEY = 16
VERSIONS = range(6)

CLASSIC = "classic"


def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest) -> Answer:
    states = {state.lower() for state in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    if types and CLASSIC not in types:
        return {"groups": []}
    return {
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": CLASSIC,
            }
            for group in broker.groups.all()
            if not states or group.state.lower() in states
        ]
    }
