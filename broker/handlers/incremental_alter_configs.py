"""IncrementalAlterConfigs (44), versions 0-1: SET, DELETE, APPEND and SUBTRACT on the configs of resources (KIP-339).

A change takes effect and is on disk before the answer. One bad config refuses its whole resource, one bad resource
refuses nothing else. Levels of loggers (KIP-412) hold until the process ends.

Deviations:
- An operation that does not exist gets INVALID_REQUEST; Kafka fails with UNKNOWN_SERVER_ERROR.
- Groups and client metrics have no configs yet: naming one is refused as unknown.
- A broker's config that is not defined here is refused with INVALID_REQUEST; Kafka stores any name.
- A number of threads may be changed to any other; Kafka at most doubles or halves it at a time.
- The items of APPEND and SUBTRACT are taken without the spaces around them; Kafka compares them as they are.
- Loggers carry this broker's module names.
"""

from typing import TYPE_CHECKING

from headgate.broker.node.config_resources import ResourceChange, change_resources
from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.protocol.request_shapes import IncrementalAlterConfigsRequest
from headgate.broker.runtime.deferred import Deferred

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

API_KEY = 44
VERSIONS = range(2)


def handle(
    broker: "Broker", context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Answer | Deferred[Answer | Disconnect]:
    changes = [
        ResourceChange(
            int(resource.resource_type),
            resource.resource_name,
            [(config.name, int(config.config_operation), config.value) for config in resource.configs],
            replaces_all=False,
        )
        for resource in request.resources
    ]
    return broker.slices.run(change_resources(broker, changes, validate_only=request.validate_only))
