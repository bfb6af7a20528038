"""Consumer groups: consumers, assignments, lags; reset of offsets, deletion."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin import groups
from headgate.kafka_client.admin.groups import Consumer, Group, find_group
from headgate.kafka_client.admin.lags import Lag, list_lags
from headgate.kafka_client.admin.offsets import Place
from headgate.kafka_client.admin.reset import Aim, Move, Target, reset_offsets
from headgate.kafka_client.errors import ResourceNotFound
from headgate.proxy.api.query import int_query
from headgate.proxy.api.record_fields import TIMESTAMP_MAX, timestamp_ms
from headgate.proxy.api.requests import INT32_MAX, Body, body_v3, number_in_path, response_type_v3
from headgate.proxy.api.v3.resources import V3, Links, Row, no_content, respond, v3_of
from headgate.proxy.api.v3.topics import Int32
from headgate.proxy.errors import BadRequest

router = APIRouter(prefix="/v3/clusters/{cluster_id}/consumer-groups", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]


class ResetTopic(Body):
    topic_name: str
    partition_ids: list[Int32] = Field(default_factory=list)


class ResetOffsets(Body):
    """One target, and the topics to reset. Without topics, all committed offsets are reset."""

    to: str | None = None
    offset: int | None = None
    timestamp: int | str | None = None
    shift_by: int | None = None
    topics: list[ResetTopic] = Field(default_factory=list)
    validate_only: bool | None = None

    def target(self) -> Target:
        """Raises BadRequest."""
        given = {name for name in ("to", "offset", "timestamp", "shift_by") if getattr(self, name) is not None}
        if len(given) != 1:
            raise BadRequest("Give one of to (earliest or latest), offset, timestamp and shift_by.")
        if self.to is not None:
            if self.to not in (Aim.EARLIEST, Aim.LATEST):
                raise BadRequest(f"to must be earliest or latest, not {self.to[:40]!r}.")
            return Target(Aim(self.to))
        if self.timestamp is not None:
            moment = timestamp_ms(self.timestamp, "timestamp")
            if moment is None or not 0 <= moment <= TIMESTAMP_MAX:
                raise BadRequest("timestamp must not be before 1970.")
            return Target(Aim.TIMESTAMP, moment)
        if self.offset is not None:
            if self.offset < 0:
                raise BadRequest(f"offset must be an integer from 0, not {self.offset}.")
            return Target(Aim.OFFSET, self.offset)
        return Target(Aim.SHIFT, self.shift_by or 0)

    def wanted(self) -> dict[str, list[int]]:
        """Raises BadRequest."""
        wanted = {each.topic_name: each.partition_ids for each in self.topics}
        if len(wanted) < len(self.topics):
            raise BadRequest("topics contains a topic_name twice.")
        return wanted


@router.get("")
async def list_all(v3: Context) -> Response:
    rows = [group_row(v3.links, group) for group in await groups.list_groups(v3.cluster)]
    return respond(v3.links.collection("KafkaConsumerGroupList", ("consumer-groups",), rows))


@router.get("/{consumer_group_id}")
async def get(v3: Context, consumer_group_id: str) -> Response:
    return respond(group_row(v3.links, await find_group(v3.cluster, consumer_group_id)))


@router.delete("/{consumer_group_id}")
async def delete(v3: Context, consumer_group_id: str) -> Response:
    """Deletes the group and its committed offsets. Fails while it has members."""
    await groups.delete_group(v3.cluster, consumer_group_id)
    return no_content()


@router.get("/{consumer_group_id}/consumers")
async def list_consumers(v3: Context, consumer_group_id: str) -> Response:
    group = await find_group(v3.cluster, consumer_group_id)
    rows = [consumer_row(v3.links, group.id, each) for each in group.consumers]
    return respond(v3.links.collection("KafkaConsumerList", ("consumer-groups", group.id, "consumers"), rows))


@router.get("/{consumer_group_id}/consumers/{consumer_id}")
async def get_consumer(v3: Context, consumer_group_id: str, consumer_id: str) -> Response:
    group = await find_group(v3.cluster, consumer_group_id)
    return respond(consumer_row(v3.links, group.id, group.consumer(consumer_id)))


@router.get("/{consumer_group_id}/consumers/{consumer_id}/assignments")
async def list_assignments(v3: Context, consumer_group_id: str, consumer_id: str) -> Response:
    group = await find_group(v3.cluster, consumer_group_id)
    consumer = group.consumer(consumer_id)
    rows = [assignment_row(v3.links, group.id, consumer_id, place) for place in sorted(consumer.assignment)]
    at = ("consumer-groups", group.id, "consumers", consumer_id, "assignments")
    return respond(v3.links.collection("KafkaConsumerAssignmentList", at, rows))


@router.get("/{consumer_group_id}/consumers/{consumer_id}/assignments/{topic_name}/partitions/{partition_id}")
async def get_assignment(
    v3: Context, consumer_group_id: str, consumer_id: str, topic_name: str, partition_id: str
) -> Response:
    place = Place(topic_name, number_in_path(partition_id))
    group = await find_group(v3.cluster, consumer_group_id)
    if place not in group.consumer(consumer_id).assignment:
        raise ResourceNotFound(f"{place} is not assigned to consumer {consumer_id}.".capitalize())
    return respond(assignment_row(v3.links, group.id, consumer_id, place))


@router.get("/{consumer_group_id}/lag-summary")
async def get_lag_summary(v3: Context, consumer_group_id: str) -> Response:
    lags = await list_lags(v3.cluster, await find_group(v3.cluster, consumer_group_id))
    if not lags:
        raise ResourceNotFound("Consumer group offsets could not be found.")
    return respond(summary_row(v3.links, consumer_group_id, lags))


@router.get("/{consumer_group_id}/lags")
async def list_all_lags(v3: Context, consumer_group_id: str) -> Response:
    lags = await list_lags(v3.cluster, await find_group(v3.cluster, consumer_group_id))
    rows = [lag_row(v3.links, consumer_group_id, lag) for lag in lags]
    return respond(v3.links.collection("KafkaConsumerLagList", ("consumer-groups", consumer_group_id, "lags"), rows))


@router.get("/{consumer_group_id}/lags/{topic_name}/partitions/{partition_id}")
async def get_lag(v3: Context, consumer_group_id: str, topic_name: str, partition_id: str) -> Response:
    wanted = Place(topic_name, number_in_path(partition_id))
    for lag in await list_lags(v3.cluster, await find_group(v3.cluster, consumer_group_id)):
        if lag.place == wanted:
            return respond(lag_row(v3.links, consumer_group_id, lag))
    raise ResourceNotFound(f"The group has no committed offset for {wanted}.")


@router.post("/{consumer_group_id}/offsets:reset")
async def reset(v3: Context, consumer_group_id: str, request: Request) -> Response:
    """Resets committed offsets. Returns old and new offsets. `validate_only` changes nothing."""
    body = await body_v3(request, ResetOffsets)
    target, wanted = body.target(), body.wanted()
    moves = await reset_offsets(v3.cluster, consumer_group_id, target, wanted, validate_only=bool(body.validate_only))
    at = ("consumer-groups", consumer_group_id, "offsets:reset")
    rows = [move_row(v3.links, consumer_group_id, move) for move in moves]
    return respond(v3.links.collection("KafkaConsumerGroupOffsetList", at, rows))


@router.delete("/{consumer_group_id}/offsets")
async def delete_offsets(v3: Context, consumer_group_id: str, request: Request) -> Response:
    """Deletes committed offsets: all, of one topic, or of one partition."""
    topic_name = request.query_params.get("topic_name")
    partition_id = int_query(request, "partition_id", maximum=INT32_MAX)
    if partition_id is not None and topic_name is None:
        raise BadRequest("partition_id requires topic_name.")
    await find_group(v3.cluster, consumer_group_id)
    places = [
        place
        for place in await groups.committed_offsets(v3.cluster, consumer_group_id)
        if topic_name in (None, place.topic) and partition_id in (None, place.partition)
    ]
    if not places:
        raise ResourceNotFound("Consumer group offsets could not be found.")
    await groups.delete_offsets(v3.cluster, consumer_group_id, places)
    return no_content()


def group_row(links: Links, group: Group) -> Row:
    at = ("consumer-groups", group.id)
    return links.resource(
        "KafkaConsumerGroup",
        at,
        ("consumer-group", group.id),
        consumer_group_id=group.id,
        is_simple=group.is_simple,
        is_mixed_consumer_group=group.is_mixed,
        type=group.type,
        partition_assignor=group.assignor,
        state=group.state,
        coordinator=links.related("brokers", group.coordinator),
        consumers=links.related(*at, "consumers"),
        lag_summary=links.related(*at, "lag-summary"),
    )


def consumer_row(links: Links, group_id: str, consumer: Consumer) -> Row:
    at = ("consumer-groups", group_id, "consumers", consumer.id)
    return links.resource(
        "KafkaConsumer",
        at,
        ("consumer-group", group_id, "consumer", consumer.id),
        consumer_group_id=group_id,
        consumer_id=consumer.id,
        instance_id=consumer.instance_id,
        client_id=consumer.client_id,
        assignments=links.related(*at, "assignments"),
    )


def assignment_row(links: Links, group_id: str, consumer_id: str, place: Place) -> Row:
    where = (place.topic, "partitions", place.partition)
    return links.resource(
        "KafkaConsumerAssignment",
        ("consumer-groups", group_id, "consumers", consumer_id, "assignments", *where),
        ("consumer-group", group_id, "consumer", consumer_id, "assignment", place.topic, "partition", place.partition),
        consumer_group_id=group_id,
        consumer_id=consumer_id,
        topic_name=place.topic,
        partition_id=place.partition,
        partition=links.related("topics", *where),
        lag=links.related("consumer-groups", group_id, "lags", *where),
    )


def lag_row(links: Links, group_id: str, lag: Lag) -> Row:
    topic, partition = lag.place.topic, lag.place.partition
    return links.resource(
        "KafkaConsumerLag",
        ("consumer-groups", group_id, "lags", topic, "partitions", partition),
        ("consumer-group", group_id, "lag", topic, "partition", partition),
        consumer_group_id=group_id,
        topic_name=topic,
        partition_id=partition,
        consumer_id=lag.consumer.id if lag.consumer else "",
        instance_id=lag.consumer.instance_id if lag.consumer else None,
        client_id=lag.consumer.client_id if lag.consumer else "",
        current_offset=lag.current_offset,
        log_end_offset=lag.log_end_offset,
        lag=lag.lag,
    )


def summary_row(links: Links, group_id: str, lags: list[Lag]) -> Row:
    worst = max(lags, key=lambda lag: lag.lag)
    consumer_id = worst.consumer.id if worst.consumer else ""
    return links.resource(
        "KafkaConsumerGroupLagSummary",
        ("consumer-groups", group_id, "lag-summary"),
        ("consumer-group", group_id, "lag-summary"),
        consumer_group_id=group_id,
        max_lag_consumer_id=consumer_id,
        max_lag_instance_id=worst.consumer.instance_id if worst.consumer else None,
        max_lag_client_id=worst.consumer.client_id if worst.consumer else "",
        max_lag_topic_name=worst.place.topic,
        max_lag_partition_id=worst.place.partition,
        max_lag=worst.lag,
        total_lag=sum(lag.lag for lag in lags),
        max_lag_consumer=links.related("consumer-groups", group_id, "consumers", consumer_id),
        max_lag_partition=links.related("topics", worst.place.topic, "partitions", worst.place.partition),
    )


def move_row(links: Links, group_id: str, move: Move) -> Row:
    topic, partition = move.place.topic, move.place.partition
    return links.resource(
        "KafkaConsumerGroupOffset",
        ("consumer-groups", group_id, "lags", topic, "partitions", partition),
        ("consumer-group", group_id, "lag", topic, "partition", partition),
        consumer_group_id=group_id,
        topic_name=topic,
        partition_id=partition,
        previous_offset=move.before,
        current_offset=move.after,
        log_end_offset=move.log_end_offset,
    )
