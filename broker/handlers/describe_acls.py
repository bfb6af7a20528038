"""DescribeAcls v1-3: Returns SECURITY_DISABLED, like Kafka without an authorizer.

Deviations:
- Any request
  Kafka: Depends on `authorizer.class.name`.
  Headgate: SECURITY_DISABLED, because there is no authorizer.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import RequestContext

API_KEY = 29
VERSIONS = range(1, 4)


def handle(broker: Broker, context: RequestContext, request: object) -> Answer:
    return {
        "error_code": ErrorCode.security_disabled,
        # Kafka's message differs from the message of CreateAcls and DeleteAcls.
        "error_message": "No Authorizer is configured on the broker",
        "resources": (),
    }
