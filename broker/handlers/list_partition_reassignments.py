"""ListPartitionReassignments v0: Returns an empty list, because replicas cannot move on a single broker."""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import RequestContext

API_KEY = 46
VERSIONS = range(1)


def handle(broker: Broker, context: RequestContext, request: object) -> Answer:
    return {"error_code": ErrorCode.none, "error_message": None, "topics": ()}
