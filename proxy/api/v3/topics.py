"""Topics: list, get, create, add partitions, delete."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin.acls import Operation
from headgate.kafka_client.admin.topics import (
    NewTopic,
    Topic,
    add_partitions,
    create_topic,
    delete_topic,
    find_topic,
    list_topics,
)
from headgate.kafka_client.errors import InvalidRequest
from headgate.proxy.api.query import flag_query
from headgate.proxy.api.requests import INT32_MAX, Body, body_v3, response_type_v3
from headgate.proxy.api.v3.resources import V3, Links, Row, no_content, respond, v3_of
from headgate.proxy.errors import BadRequest

router = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]
Int32 = Annotated[int, Field(ge=-(2**31), le=INT32_MAX)]
PartitionKey = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Int16 = Annotated[int, Field(ge=-(2**15), le=2**15 - 1)]


class NewConfig(Body):
    name: str
    value: str | None = None


class Assignment(Body):
    partition_id: Int32
    broker_ids: list[Int32]


class CreateTopic(Body):
    topic_name: str
    partitions_count: Int32 | None = None
    replication_factor: Int16 | None = None
    replicas_assignments: list[Assignment] | dict[PartitionKey, list[Int32]] = Field(default_factory=list)
    """A map by partition, as in Confluent's API, or a list."""
    configs: list[NewConfig] = Field(default_factory=list)
    validate_only: bool | None = None

    def wanted(self) -> NewTopic:
        """Raises BadRequest."""
        given = self.replicas_assignments
        if isinstance(given, dict):
            assignments = {int(partition): brokers for partition, brokers in given.items()}
        else:
            assignments = {each.partition_id: each.broker_ids for each in given}
        if len(assignments) < len(self.replicas_assignments):
            raise BadRequest("replicas_assignments contains a partition_id twice.")
        if assignments and (self.partitions_count is not None or self.replication_factor is not None):
            raise BadRequest("Use either replicas_assignments, or partitions_count and replication_factor.")
        configs = {each.name: each.value for each in self.configs}
        if len(configs) < len(self.configs):
            raise BadRequest("configs contains a name twice.")
        return NewTopic(self.topic_name, self.partitions_count, self.replication_factor, assignments, configs)


class UpdateTopic(Body):
    partitions_count: Int32


@router.get("")
async def list_all(v3: Context, request: Request) -> Response:
    with_operations = flag_query(request, "include_authorized_operations")
    rows = [
        topic_row(v3.links, topic, with_operations=with_operations)
        for topic in await list_topics(v3.cluster, with_operations=with_operations)
    ]
    return respond(v3.links.collection("KafkaTopicList", ("topics",), rows))


@router.post("")
async def create(v3: Context, request: Request) -> Response:
    body = await body_v3(request, CreateTopic)
    wanted = body.wanted()
    partitions, replicas = await create_topic(v3.cluster, wanted, validate_only=bool(body.validate_only))
    row = topic_row(v3.links, Topic(wanted.name, False, ()))
    # Older brokers do not return the values of their defaults.
    row["partitions_count"] = partitions or max(wanted.partitions or len(wanted.assignments or ()), 0)
    row["replication_factor"] = replicas or max(wanted.replication_factor or 0, 0)
    return respond(row, 200 if body.validate_only else 201, row["metadata"]["self"])


@router.get("/{topic_name}")
async def get(v3: Context, topic_name: str, request: Request) -> Response:
    with_operations = flag_query(request, "include_authorized_operations")
    topic = await find_topic(v3.cluster, topic_name, with_operations=with_operations)
    return respond(topic_row(v3.links, topic, with_operations=with_operations))


@router.patch("/{topic_name}")
async def update(v3: Context, topic_name: str, request: Request) -> Response:
    body = await body_v3(request, UpdateTopic)
    topic = await find_topic(v3.cluster, topic_name)
    if body.partitions_count < len(topic.partitions):
        raise InvalidRequest(
            f"Topic {topic_name} has {len(topic.partitions)} partitions. The number cannot decrease to"
            f" {body.partitions_count}."
        )
    await add_partitions(v3.cluster, topic_name, body.partitions_count)
    return respond(topic_row(v3.links, await find_topic(v3.cluster, topic_name)))


@router.delete("/{topic_name}")
async def delete(v3: Context, topic_name: str) -> Response:
    await delete_topic(v3.cluster, topic_name)
    return no_content()


def topic_row(links: Links, topic: Topic, *, with_operations: bool = False) -> Row:
    at = ("topics", topic.name)
    row = links.resource(
        "KafkaTopic",
        at,
        ("topic", topic.name),
        topic_name=topic.name,
        is_internal=topic.is_internal,
        replication_factor=topic.replication_factor,
        partitions_count=len(topic.partitions),
        partitions=links.related(*at, "partitions"),
        configs=links.related(*at, "configs"),
        partition_reassignments=links.related(*at, "partitions", "-", "reassignment"),
    )
    if with_operations:
        known = {operation.value: operation.name for operation in Operation}
        row["authorized_operations"] = [known[each] for each in topic.authorized_operations if each in known]
    return row
