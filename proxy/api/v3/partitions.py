"""Partitions: replicas, offsets, reassignments, deletion of records."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin.offsets import HIGH_WATERMARK, Place, bounds, purge
from headgate.kafka_client.admin.reassignments import Reassignment, list_reassignments
from headgate.kafka_client.admin.topics import Partition, find_topic
from headgate.kafka_client.errors import ResourceNotFound
from headgate.proxy.api.query import check_query_names, int_query
from headgate.proxy.api.requests import number_in_path, response_type_v3
from headgate.proxy.api.v3.resources import V3, Links, Row, respond, v3_of
from headgate.proxy.errors import BadRequest

router = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]
# The only offset type of Confluent's API.
_OFFSET_TYPE = "earliest_and_latest"


@router.get("/-/partitions/-/reassignment")
async def list_all_reassignments(v3: Context) -> Response:
    rows = [reassignment_row(v3.links, each) for each in await list_reassignments(v3.cluster)]
    return respond(
        v3.links.collection("KafkaReassignmentList", ("topics", "-", "partitions", "-", "reassignment"), rows)
    )


@router.get("/{topic_name}/partitions/-/reassignment")
async def list_reassignments_of_topic(v3: Context, topic_name: str) -> Response:
    found = await list_reassignments(v3.cluster, await find_topic(v3.cluster, topic_name))
    at = ("topics", topic_name, "partitions", "-", "reassignment")
    return respond(
        v3.links.collection("KafkaReassignmentList", at, [reassignment_row(v3.links, each) for each in found])
    )


@router.get("/{topic_name}/partitions")
async def list_all(v3: Context, topic_name: str) -> Response:
    topic = await find_topic(v3.cluster, topic_name)
    rows = [partition_row(v3.links, topic_name, each) for each in topic.partitions]
    return respond(v3.links.collection("KafkaPartitionList", ("topics", topic_name, "partitions"), rows))


@router.get("/{topic_name}/partitions/{partition_id}")
async def get(v3: Context, topic_name: str, partition_id: str) -> Response:
    return respond(partition_row(v3.links, topic_name, await _partition(v3, topic_name, partition_id)))


@router.get("/{topic_name}/partitions/{partition_id}/offset")
async def get_offsets(v3: Context, topic_name: str, partition_id: str, request: Request) -> Response:
    asked = request.query_params.get("offset_type", _OFFSET_TYPE)
    if asked != _OFFSET_TYPE:
        raise BadRequest(f"offset_type:{asked[:40]} is invalid; it can only be {_OFFSET_TYPE}.")
    partition = await _partition(v3, topic_name, partition_id)
    place = Place(topic_name, partition.index)
    start, end = (await bounds(v3.cluster, [place]))[place]
    row = v3.links.resource(
        "KafkaPartitionWithOffsets",
        ("topics", topic_name, "partitions", partition.index, "offset"),
        ("topic", topic_name, "partition", partition.index, "offset_type", _OFFSET_TYPE),
        topic_name=topic_name,
        partition_id=partition.index,
        earliest_offset=start,
        latest_offset=end,
    )
    return respond(row)


@router.get("/{topic_name}/partitions/{partition_id}/replicas")
async def list_replicas(v3: Context, topic_name: str, partition_id: str) -> Response:
    partition = await _partition(v3, topic_name, partition_id)
    rows = [replica_row(v3.links, topic_name, partition, broker) for broker in partition.replicas]
    at = ("topics", topic_name, "partitions", partition.index, "replicas")
    return respond(v3.links.collection("KafkaReplicaList", at, rows))


@router.get("/{topic_name}/partitions/{partition_id}/replicas/{broker_id}")
async def get_replica(v3: Context, topic_name: str, partition_id: str, broker_id: str) -> Response:
    broker = number_in_path(broker_id)
    partition = await _partition(v3, topic_name, partition_id)
    if broker not in partition.replicas:
        raise ResourceNotFound(f"Partition {partition.index} of topic {topic_name} has no replica on broker {broker}.")
    return respond(replica_row(v3.links, topic_name, partition, broker))


@router.get("/{topic_name}/partitions/{partition_id}/reassignment")
async def get_reassignment(v3: Context, topic_name: str, partition_id: str) -> Response:
    wanted = number_in_path(partition_id)
    topic = await find_topic(v3.cluster, topic_name)
    topic.partition(wanted)
    for found in await list_reassignments(v3.cluster, topic):
        if found.partition == wanted:
            return respond(reassignment_row(v3.links, found))
    raise ResourceNotFound(f"Partition {wanted} of topic {topic_name} is not being reassigned.")


@router.delete("/{topic_name}/records")
async def purge_topic(v3: Context, topic_name: str, request: Request) -> Response:
    """Deletes all records of a topic. Partitions, configs and offsets stay."""
    check_query_names(request)
    topic = await find_topic(v3.cluster, topic_name)
    wanted = {Place(topic_name, each.index): HIGH_WATERMARK for each in topic.partitions}
    return await _purged(v3, wanted, ("topics", topic_name, "records"))


@router.delete("/{topic_name}/partitions/{partition_id}/records")
async def purge_partition(v3: Context, topic_name: str, partition_id: str, request: Request) -> Response:
    """Deletes the records of a partition: all, or those before an offset."""
    check_query_names(request, "before_offset")
    before = int_query(request, "before_offset")
    partition = await _partition(v3, topic_name, partition_id)
    wanted = {Place(topic_name, partition.index): HIGH_WATERMARK if before is None else before}
    return await _purged(v3, wanted, ("topics", topic_name, "partitions", partition.index, "records"))


async def _purged(v3: V3, wanted: dict[Place, int], at: tuple[object, ...]) -> Response:
    starts = await purge(v3.cluster, wanted)
    rows = [
        v3.links.resource(
            "KafkaPurge",
            ("topics", place.topic, "partitions", place.partition, "records"),
            ("topic", place.topic, "partition", place.partition, "records"),
            topic_name=place.topic,
            partition_id=place.partition,
            earliest_offset=starts[place],
        )
        for place in sorted(starts)
    ]
    return respond(v3.links.collection("KafkaPurgeList", at, rows))


async def _partition(v3: V3, topic_name: str, partition_id: str) -> Partition:
    wanted = number_in_path(partition_id)
    return (await find_topic(v3.cluster, topic_name)).partition(wanted)


def partition_row(links: Links, topic: str, partition: Partition) -> Row:
    at = ("topics", topic, "partitions", partition.index)
    row = links.resource(
        "KafkaPartition",
        at,
        ("topic", topic, "partition", partition.index),
        topic_name=topic,
        partition_id=partition.index,
    )
    if partition.leader >= 0:
        row["leader"] = links.related(*at, "replicas", partition.leader)
    return row | {"replicas": links.related(*at, "replicas"), "reassignment": links.related(*at, "reassignment")}


def replica_row(links: Links, topic: str, partition: Partition, broker: int) -> Row:
    return links.resource(
        "KafkaReplica",
        ("topics", topic, "partitions", partition.index, "replicas", broker),
        ("topic", topic, "partition", partition.index, "replica", broker),
        topic_name=topic,
        partition_id=partition.index,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.in_sync,
        broker=links.related("brokers", broker),
    )


def reassignment_row(links: Links, found: Reassignment) -> Row:
    at = ("topics", found.topic, "partitions", found.partition)
    return links.resource(
        "KafkaReassignment",
        (*at, "reassignment"),
        ("topic", found.topic, "partition", found.partition, "reassignment"),
        topic_name=found.topic,
        partition_id=found.partition,
        adding_replicas=list(found.adding),
        removing_replicas=list(found.removing),
        replicas=links.related(*at, "replicas"),
    )
