"""DeleteAcls v1-3: Returns SECURITY_DISABLED for each filter, like Kafka without an authorizer.

Deviations:
- Any request
  Kafka: Depends on `authorizer.class.name`.
  Headgate: SECURITY_DISABLED, because there is no authorizer.
"""

from headgate.broker.handlers.create_acls import SECURITY_DISABLED
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DeleteAclsRequest, RequestContext

API_KEY = 31
VERSIONS = range(1, 4)


def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest) -> Answer:
    return {"filter_results": [{**SECURITY_DISABLED, "matching_acls": ()}] * len(request.filters)}
