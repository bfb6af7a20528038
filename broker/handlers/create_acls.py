"""CreateAcls v1-3: Returns SECURITY_DISABLED for each ACL, like Kafka without an authorizer.

Deviations:
- Any request
  Kafka: Depends on `authorizer.class.name`.
  Headgate: SECURITY_DISABLED, because there is no authorizer.
"""

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.protocol.request_shapes import CreateAclsRequest
from headgate.broker.requests.acl_errors import SECURITY_DISABLED

API_KEY = 30
VERSIONS = range(1, 4)


def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> Answer:
    return {"results": [SECURITY_DISABLED] * len(request.creations)}
