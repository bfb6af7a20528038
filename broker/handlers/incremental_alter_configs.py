"""IncrementalAlterConfigs v0-1: Applies SET, DELETE, APPEND and SUBTRACT to configs of resources (KIP-339).

The response is sent when the change is on disk and in effect. One invalid config rejects its resource, but not other
resources. Logger levels (KIP-412) are not persistent.

Deviations:
- An unknown operation
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: INVALID_REQUEST
- Configs of a group
  Kafka: Stores them.
  Headgate: INVALID_CONFIG
- Configs of client metrics
  Kafka: Stores them.
  Headgate: INVALID_REQUEST
- A broker config that Headgate does not define
  Kafka: Stores any name.
  Headgate: INVALID_REQUEST
- A number of threads
  Kafka: At most doubles or halves the number per request.
  Headgate: Accepts any number.
- Spaces around the items of APPEND and SUBTRACT
  Kafka: Are part of the item.
  Headgate: Are removed.
- Logger names
  Kafka: Java classes.
  Headgate: Python modules.
"""

from headgate.broker.node.broker import Broker
from headgate.broker.node.config_resources import ResourceChange, change_resources
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import IncrementalAlterConfigsRequest, RequestContext
from headgate.broker.runtime.time_slicing import Work

API_KEY = 44
VERSIONS = range(2)


def handle(broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest) -> Work[Answer]:
    changes = [
        ResourceChange(
            int(resource.resource_type),
            resource.resource_name,
            [(config.name, int(config.config_operation), config.value) for config in resource.configs],
            replaces_all=False,
        )
        for resource in request.resources
    ]
    return change_resources(broker, changes, validate_only=request.validate_only)
