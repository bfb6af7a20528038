"""ListConfigResources v0-1: Lists the resources that can have configs (KIP-1142).

v0 lists client metrics. v1 lists the requested resource types, or all types if the request contains none.

Deviations:
- Groups and client metrics
  Kafka: Lists those that have configs.
  Headgate: None.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.config_resources import ResourceType
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import ListConfigResourcesRequest, RequestContext

API_KEY = 74
VERSIONS = range(2)


def handle(broker: Broker, context: RequestContext, request: ListConfigResourcesRequest) -> Answer:
    if context.api_version == 0:
        return {"error_code": ErrorCode.none, "config_resources": ()}
    known = {resource_type.value for resource_type in ResourceType}
    wanted = {int(resource_type) for resource_type in request.resource_types} or known
    if not wanted <= known:
        return {"error_code": ErrorCode.unsupported_version, "config_resources": ()}
    resources: list[tuple[int, str]] = []
    if ResourceType.TOPIC in wanted:
        resources.extend((ResourceType.TOPIC.value, topic.name) for topic in broker.topics.all())
    resources.extend(
        (resource_type.value, str(broker.node_id))
        for resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        if resource_type in wanted
    )
    return {
        "error_code": ErrorCode.none,
        "config_resources": [
            {"resource_name": name, "resource_type": resource_type} for resource_type, name in resources
        ],
    }
