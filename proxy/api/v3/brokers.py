"""Brokers and their replicas."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from headgate.kafka_client.admin.topics import Broker, describe_cluster, list_topics
from headgate.proxy.api.requests import number_in_path, response_type_v3
from headgate.proxy.api.v3.partitions import replica_row
from headgate.proxy.api.v3.resources import V3, Links, Row, respond, v3_of

router = APIRouter(prefix="/v3/clusters/{cluster_id}/brokers", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]


@router.get("")
async def list_all(v3: Context) -> Response:
    view = await describe_cluster(v3.cluster)
    rows = [broker_row(v3.links, broker) for broker in view.brokers]
    return respond(v3.links.collection("KafkaBrokerList", ("brokers",), rows))


@router.get("/{broker_id}")
async def get(v3: Context, broker_id: str) -> Response:
    wanted = number_in_path(broker_id)
    view = await describe_cluster(v3.cluster)
    return respond(broker_row(v3.links, view.broker(wanted)))


@router.get("/{broker_id}/partition-replicas")
async def list_replicas(v3: Context, broker_id: str) -> Response:
    wanted = number_in_path(broker_id)
    (await describe_cluster(v3.cluster)).broker(wanted)
    rows = [
        replica_row(v3.links, topic.name, partition, wanted)
        for topic in await list_topics(v3.cluster)
        for partition in topic.partitions
        if wanted in partition.replicas
    ]
    return respond(v3.links.collection("KafkaReplicaList", ("brokers", wanted, "partition-replicas"), rows))


def broker_row(links: Links, broker: Broker) -> Row:
    at = ("brokers", broker.id)
    return links.resource(
        "KafkaBroker",
        at,
        ("broker", broker.id),
        broker_id=broker.id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        configs=links.related(*at, "configs"),
        partition_replicas=links.related(*at, "partition-replicas"),
    )
