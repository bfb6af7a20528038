"""CreateAcls v1-3: Returns SECURITY_DISABLED for each ACL, like Kafka without an authorizer.

Deviations:
- Any request
  Kafka: Depends on `authorizer.class.name`.
  Headgate: SECURITY_DISABLED, because there is no authorizer.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import CreateAclsRequest, RequestContext

API_KEY = 30
VERSIONS = range(1, 4)

SECURITY_DISABLED: Answer = {
    "error_code": ErrorCode.security_disabled,
    "error_message": "No Authorizer is configured.",
}


def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> Answer:
    return {"results": [SECURITY_DISABLED] * len(request.creations)}
