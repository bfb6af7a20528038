"""CreateAcls v1-3: SECURITY_DISABLED for each ACL, as Kafka returns it without an authorizer.

Deviations: there is no authorizer to configure yet.
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
