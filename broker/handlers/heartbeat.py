"""Heartbeat v0-4: Keeps a member alive. During a rebalance it returns REBALANCE_IN_PROGRESS."""

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import HeartbeatRequest, RequestContext

API_KEY = 12
VERSIONS = range(5)


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Answer:
    error = broker.groups.heartbeat(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
    )
    return {"error_code": error}
