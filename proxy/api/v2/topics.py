"""v2 metadata: topics, partitions, offsets, brokers. POST /admin/topics is that of the Strimzi bridge."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin import configs
from headgate.kafka_client.admin.configs import Resource, ResourceType
from headgate.kafka_client.admin.offsets import Place, bounds
from headgate.kafka_client.admin.topics import (
    NewTopic,
    Partition,
    create_topic,
    describe_cluster,
    find_topic,
    list_topics,
)
from headgate.proxy.api.requests import Body, body_v2, number_in_path, response_type_v2, services_of
from headgate.proxy.api.v3.topics import Int16, Int32, NewConfig

router = APIRouter()
MediaType = Annotated[str, Depends(response_type_v2)]


class CreateTopic(Body):
    topic_name: str
    partitions_count: Int32 | None = None
    replication_factor: Int16 | None = None
    configs: list[NewConfig] = Field(default_factory=list)


@router.get("/")
async def root(media_type: MediaType) -> Response:
    return _respond({}, media_type)


@router.get("/topics")
async def list_names(request: Request, media_type: MediaType) -> Response:
    topics = await list_topics(services_of(request).admin)
    return _respond([topic.name for topic in topics], media_type)


@router.get("/topics/{topic}")
async def get(request: Request, topic: str, media_type: MediaType) -> Response:
    cluster = services_of(request).admin
    found = await find_topic(cluster, topic)
    listed = await configs.describe_one(cluster, Resource(ResourceType.TOPIC, found.name))
    row = {
        "name": found.name,
        "configs": {config.name: config.value for config in listed},
        "partitions": [partition_row(each) for each in found.partitions],
    }
    return _respond(row, media_type)


@router.get("/topics/{topic}/partitions")
async def list_partitions(request: Request, topic: str, media_type: MediaType) -> Response:
    found = await find_topic(services_of(request).admin, topic)
    return _respond([partition_row(each) for each in found.partitions], media_type)


@router.get("/topics/{topic}/partitions/{partition}")
async def get_partition(request: Request, topic: str, partition: str, media_type: MediaType) -> Response:
    wanted = number_in_path(partition)
    found = await find_topic(services_of(request).admin, topic)
    return _respond(partition_row(found.partition(wanted)), media_type)


@router.get("/topics/{topic}/partitions/{partition}/offsets")
async def get_offsets(request: Request, topic: str, partition: str, media_type: MediaType) -> Response:
    place = Place(topic, number_in_path(partition))
    start, end = (await bounds(services_of(request).admin, [place]))[place]
    return _respond({"beginning_offset": start, "end_offset": end}, media_type)


@router.get("/brokers")
async def list_brokers(request: Request, media_type: MediaType) -> Response:
    view = await describe_cluster(services_of(request).admin)
    return _respond({"brokers": [broker.id for broker in view.brokers]}, media_type)


@router.post("/admin/topics")
async def create(request: Request, media_type: MediaType) -> Response:
    body = await body_v2(request, CreateTopic)
    wanted = NewTopic(
        body.topic_name,
        body.partitions_count,
        body.replication_factor,
        configs={each.name: each.value for each in body.configs},
    )
    await create_topic(services_of(request).admin, wanted, validate_only=False)
    return Response(status_code=201, media_type=media_type)


def partition_row(partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition.index,
        "leader": partition.leader,
        "replicas": [
            {"broker": broker, "leader": broker == partition.leader, "in_sync": broker in partition.in_sync}
            for broker in partition.replicas
        ],
    }


def _respond(row: Any, media_type: str) -> Response:
    return Response(orjson.dumps(row), media_type=media_type)
