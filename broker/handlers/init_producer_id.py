"""InitProducerId v0-5: Returns a producer id for an idempotent producer (KIP-98, KIP-360).

Without a transactional id, each request gets a new producer id with epoch 0. The producer id and epoch of the request
are ignored. If only one of the two is set, the response is INVALID_REQUEST.

Deviations:
- A request with a transactional id
  Kafka: Initializes the transactional producer.
  Headgate: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and a log line that transactions are not supported.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import code_of
from headgate.broker.node.unsupported_features import Feature
from headgate.broker.protocol.outcomes import Answer, clipped
from headgate.broker.protocol.request_shapes import InitProducerIdRequest, RequestContext
from headgate.broker.runtime.errors import StorageError

API_KEY = 22
VERSIONS = range(6)

NONE = -1
"""The value of producer id and epoch for a producer without an id. Requests before version 3 lack both fields."""

_FAILED = {"producer_id": -1, "producer_epoch": -1}


def handle(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> Answer:
    if request.transactional_id is not None:
        if request.transactional_id == "":
            return {"error_code": ErrorCode.invalid_request, **_FAILED}
        broker.unsupported.report(Feature.TRANSACTIONS, clipped(f"producer {request.transactional_id!r}"))
        return {"error_code": ErrorCode.transactional_id_authorization_failed, **_FAILED}
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return {"error_code": ErrorCode.invalid_request, **_FAILED}
    try:
        producer_id = broker.producer_ids.take()
    except StorageError as error:
        return {"error_code": code_of(error), **_FAILED}
    return {"error_code": ErrorCode.none, "producer_id": producer_id, "producer_epoch": 0}
