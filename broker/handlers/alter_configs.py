"""AlterConfigs v0-2: Replaces all dynamic configs of a resource. Deprecated: use IncrementalAlterConfigs.

Configs that the request does not contain return to their defaults.

Deviations:
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
"""

from headgate.broker.node.broker import Broker
from headgate.broker.node.config_resources import ResourceChange, change_resources
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import AlterConfigsRequest, RequestContext
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.configs.alterations import Operation

API_KEY = 33
VERSIONS = range(3)


def handle(broker: Broker, context: RequestContext, request: AlterConfigsRequest) -> Work[Answer]:
    changes = [
        ResourceChange(
            int(resource.resource_type),
            resource.resource_name,
            [(config.name, Operation.SET.value, config.value) for config in resource.configs],
            replaces_all=True,
        )
        for resource in request.resources
    ]
    return change_resources(broker, changes, validate_only=request.validate_only)
