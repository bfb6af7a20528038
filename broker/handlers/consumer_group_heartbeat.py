"""ConsumerGroupHeartbeat v0-1: UNSUPPORTED_VERSION, as Kafka returns it when the consumer group protocol is disabled.

It is advertised so that a client that uses the protocol fails with an error. Without it, librdkafka waits forever.

Deviations: the consumer group protocol (KIP-848) does not exist yet. Clients have to use
group.protocol=classic, which is their default.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.unsupported_features import Feature
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.group_request_shapes import ConsumerGroupHeartbeatRequest
from headgate.broker.protocol.messages import clipped
from headgate.broker.protocol.request_context import RequestContext

API_KEY = 68
VERSIONS = range(2)

_MESSAGE = "This broker does not support the consumer group protocol (KIP-848): set group.protocol=classic."


def handle(broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
    broker.unsupported.report(Feature.CONSUMER_PROTOCOL, clipped(f"group {request.group_id!r}"))
    return {
        "error_code": ErrorCode.unsupported_version,
        "error_message": _MESSAGE,
    }
