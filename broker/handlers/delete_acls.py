"""DeleteAcls v1-3: SECURITY_DISABLED for each filter, as Kafka returns it without an authorizer.

Deviations: there is no authorizer to configure yet.
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
