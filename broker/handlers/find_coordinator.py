"""FindCoordinator v0-6: Returns the coordinator of groups and transactional ids, which is always this broker.

v4+ accepts several keys. Share coordinators (key type 2) and unknown key types get INVALID_REQUEST. Transactional ids
get this broker as well: InitProducerId then returns an error that clients do not retry.

Deviations:
- A coordinator whose internal topic does not exist yet
  Kafka: COORDINATOR_NOT_AVAILABLE until the topic is created.
  Headgate: Returns this broker.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import FindCoordinatorRequest, RequestContext

API_KEY = 10
VERSIONS = range(7)

FIRST_BATCHED_VERSION = 4
KEY_TYPES = (0, 1)
"""Groups and transactions."""


def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest) -> Answer:
    is_known = request.key_type in KEY_TYPES
    host, port = broker.advertised() if is_known else ("", -1)
    found = {
        "node_id": broker.node_id if is_known else -1,
        "host": host,
        "port": port,
        "error_code": ErrorCode.none if is_known else ErrorCode.invalid_request,
    }
    if context.api_version < FIRST_BATCHED_VERSION:
        # In these versions, Kafka returns the message "NONE" if there is no error.
        return {**found, "error_message": "NONE" if is_known else "Unknown coordinator type."}
    message = "" if is_known else "Unknown coordinator type."
    return {"coordinators": [{**found, "key": key, "error_message": message} for key in request.coordinator_keys]}
