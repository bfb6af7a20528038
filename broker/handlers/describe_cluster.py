"""DescribeCluster v0-2: Returns the broker, which is also the controller."""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DescribeClusterRequest, RequestContext
from headgate.broker.state.operations import CLUSTER_OPERATIONS, UNASKED_OPERATIONS

API_KEY = 60
VERSIONS = range(3)

BROKERS, CONTROLLERS = 1, 2


def handle(broker: Broker, context: RequestContext, request: DescribeClusterRequest) -> Answer:
    endpoint_type = request.endpoint_type
    if endpoint_type == CONTROLLERS:
        wanted = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return _refused(ErrorCode.mismatched_endpoint_type, wanted)
    if endpoint_type != BROKERS:
        return _refused(ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {endpoint_type}")
    host, port = broker.advertised()
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "endpoint_type": BROKERS,
        "cluster_id": broker.cluster_id,
        "controller_id": broker.node_id,
        "brokers": [
            {
                "broker_id": broker.node_id,
                "host": host,
                "port": port,
                "rack": broker.settings.broker_rack,
                "is_fenced": False,
            }
        ],
        "cluster_authorized_operations": (
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else UNASKED_OPERATIONS
        ),
    }


def _refused(code: ErrorCode, message: str) -> Answer:
    return {
        "error_code": code,
        "error_message": message,
        "endpoint_type": BROKERS,
        "controller_id": -1,
        "cluster_authorized_operations": UNASKED_OPERATIONS,
    }
