"""The cluster of this proxy. The list always has one entry."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin.topics import ClusterView, describe_cluster
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.requests import response_type_v3, services_of
from headgate.proxy.api.v3.resources import V3, Links, Row, respond, v3_of

router = APIRouter(prefix="/v3/clusters", dependencies=[Depends(response_type_v3)])


@router.get("")
async def list_clusters(request: Request) -> Response:
    services = services_of(request)
    view = await describe_cluster(services.admin)
    base = base_url(request, services.settings.advertised_url)
    rows = [cluster_row(Links(base, view.cluster_id), view)]
    return respond(
        {"kind": "KafkaClusterList", "metadata": {"self": f"{base}/v3/clusters", "next": None}, "data": rows}
    )


@router.get("/{cluster_id}")
async def get_cluster(v3: Annotated[V3, Depends(v3_of)]) -> Response:
    return respond(cluster_row(v3.links, await describe_cluster(v3.cluster)))


def cluster_row(links: Links, view: ClusterView) -> Row:
    row = links.resource("KafkaCluster", (), ())
    if view.controller is not None:
        row["controller"] = links.related("brokers", view.controller)
    return row | {
        "acls": links.related("acls"),
        "brokers": links.related("brokers"),
        "broker_configs": links.related("broker-configs"),
        "consumer_groups": links.related("consumer-groups"),
        "topics": links.related("topics"),
        "partition_reassignments": links.related("topics", "-", "partitions", "-", "reassignment"),
    }
