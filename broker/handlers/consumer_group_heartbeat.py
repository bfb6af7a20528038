"""ConsumerGroupHeartbeat v0-1: Returns UNSUPPORTED_VERSION, like Kafka with the consumer protocol disabled.

The API is advertised so that clients fail with an error. Without it, librdkafka waits forever.

Deviations:
- A consumer with `group.protocol=consumer` (KIP-848)
  Kafka: Joins the group.
  Headgate: UNSUPPORTED_VERSION. Use `group.protocol=classic`, the default of clients.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.unsupported_features import Feature
from headgate.broker.protocol.outcomes import Answer, clipped
from headgate.broker.protocol.request_shapes import ConsumerGroupHeartbeatRequest, RequestContext

API_KEY = 68
VERSIONS = range(2)

_MESSAGE = "This broker does not support the consumer group protocol (KIP-848): set group.protocol=classic."


def handle(broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
    broker.unsupported.report(Feature.CONSUMER_PROTOCOL, clipped(f"group {request.group_id!r}"))
    return {
        "error_code": ErrorCode.unsupported_version,
        "error_message": _MESSAGE,
    }
