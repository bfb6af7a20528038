"""DeleteAcls v1-3: Returns SECURITY_DISABLED for each filter, like Kafka without an authorizer.

Deviations:
- Any request
  Kafka: Depends on `authorizer.class.name`.
  Headgate: SECURITY_DISABLED, because there is no authorizer.
"""

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.protocol.request_shapes import DeleteAclsRequest
from headgate.broker.requests.acl_errors import SECURITY_DISABLED

API_KEY = 31
VERSIONS = range(1, 4)


def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest) -> Answer:
    return {"filter_results": [{**SECURITY_DISABLED, "matching_acls": ()}] * len(request.filters)}
