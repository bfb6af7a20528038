"""AlterConfigs (33), versions 0-2: replaces all dynamic configs of a resource by those named.

What the request does not name goes back to its default. Kept for old clients; IncrementalAlterConfigs took its place.

Deviations:
- Groups and client metrics have no configs yet: naming one is refused as unknown.
- A broker's config that is not defined here is refused with INVALID_REQUEST; Kafka stores any name.
- A number of threads may be changed to any other; Kafka at most doubles or halves it at a time.
"""

from typing import TYPE_CHECKING

from headgate.broker.node.config_resources import ResourceChange, change_resources
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.protocol.request_shapes import AlterConfigsRequest
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.configs.alterations import Operation

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

API_KEY = 33
VERSIONS = range(3)


def handle(
    broker: "Broker", context: RequestContext, request: AlterConfigsRequest
) -> Answer | Deferred[Answer | Disconnect]:
    changes = [
        ResourceChange(
            int(resource.resource_type),
            resource.resource_name,
            [(config.name, Operation.SET.value, config.value) for config in resource.configs],
            replaces_all=True,
        )
        for resource in request.resources
    ]
    return broker.slices.run(change_resources(broker, changes, validate_only=request.validate_only))
