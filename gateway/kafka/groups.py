"""Consumer groups: who is in them, what they have committed, and changing that.

Classic groups through DescribeGroups, groups of the consumer protocol (KIP-848) through ConsumerGroupDescribe.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from gateway.kafka.cluster import Cluster
from gateway.kafka.errors import Refused, UnknownGroup, check
from gateway.kafka.messages import Api
from gateway.kafka.offsets import Place

CONSUMER_PROTOCOL = "consumer"
NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class ListedGroup:
    name: str
    state: str | None
    """None where the cluster is too old to tell."""
    type: str | None
    protocol_type: str


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    state: str
    coordinator: int
    assignor: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    metadata: str


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    groups: dict[str, ListedGroup] = {}
    for node in cluster.nodes():
        answer = await cluster.ask(Api.LIST_GROUPS, {}, node)
        check(f"groups of broker {node}", answer.error_code)
        for group in answer.groups:
            state, kind = getattr(group, "group_state", None), getattr(group, "group_type", None)
            groups[group.group_id] = ListedGroup(group.group_id, state, kind, group.protocol_type)
    return [groups[name] for name in sorted(groups)]


async def describe_group(cluster: Cluster, name: str) -> Group:
    """Raises UnknownGroup, Refused."""
    node = await cluster.coordinator(name)
    listed = {group.name: group for group in await list_groups(cluster)}
    if name not in listed:
        raise UnknownGroup(name)
    if (listed[name].type or "").lower() == CONSUMER_PROTOCOL:
        return await _describe_consumer_group(cluster, name, node)
    answer = await cluster.ask(Api.DESCRIBE_GROUPS, {"groups": [name]}, node)
    (group,) = answer.groups
    check(f"group {name}", group.error_code, getattr(group, "error_message", None))
    members = [
        Member(
            each.member_id,
            getattr(each, "group_instance_id", None),
            each.client_id,
            each.client_host.removeprefix("/"),
            _assignment(each.member_assignment),
        )
        for each in group.members
    ]
    return Group(name, group.group_state, node, group.protocol_data, tuple(members))


async def _describe_consumer_group(cluster: Cluster, name: str, node: int) -> Group:
    answer = await cluster.ask(Api.CONSUMER_GROUP_DESCRIBE, {"group_ids": [name]}, node)
    (group,) = answer.groups
    if group.error_code is ErrorCode.group_id_not_found:
        raise UnknownGroup(name)
    check(f"group {name}", group.error_code, group.error_message)
    members = [
        Member(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host.removeprefix("/"),
            tuple(
                Place(part.topic_name, index) for part in each.assignment.topic_partitions for index in part.partitions
            ),
        )
        for each in group.members
    ]
    return Group(name, group.group_state, node, group.assignor_name, tuple(members))


async def committed_offsets(cluster: Cluster, group: str) -> dict[Place, Committed]:
    """Everything that the group has committed."""
    node = await cluster.coordinator(group)
    answer = await cluster.ask(Api.OFFSET_FETCH, {"group_id": group, "topics": None}, node)
    check(f"group {group}", answer.error_code)
    found: dict[Place, Committed] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            place = Place(topic.name, partition.partition_index)
            check(f"group {group}, partition {place.partition} of topic {place.topic}", partition.error_code)
            if partition.committed_offset != NO_OFFSET:
                found[place] = Committed(partition.committed_offset, partition.metadata or "")
    return found


async def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[Place, int]) -> None:
    """Commits for a group without members, as an admin does. Raises Refused."""
    node = await cluster.coordinator(group)
    request = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
                    for partition, offset in partitions
                ],
            }
            for topic, partitions in _by_topic(offsets.items())
        ],
    }
    answer = await cluster.ask(Api.OFFSET_COMMIT, request, node)
    for topic in answer.topics:
        for partition in topic.partitions:
            where = f"group {group}, partition {partition.partition_index} of topic {topic.name}"
            check(where, partition.error_code)


async def delete_group(cluster: Cluster, name: str) -> None:
    node = await cluster.coordinator(name)
    answer = await cluster.ask(Api.DELETE_GROUPS, {"groups_names": [name]}, node)
    for result in answer.results:
        if result.error_code is ErrorCode.group_id_not_found:
            raise UnknownGroup(name)
        if result.error_code is ErrorCode.non_empty_group:
            raise Refused(f"group {name}", result.error_code, "it has members")
        check(f"group {name}", result.error_code)


def _by_topic(offsets: Iterable[tuple[Place, int]]) -> list[tuple[str, list[tuple[int, int]]]]:
    topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, offset in offsets:
        topics[place.topic].append((place.partition, offset))
    return list(topics.items())


def _assignment(content: bytes) -> tuple[Place, ...]:
    """The partitions in a member's assignment; none if it is not one of the consumer protocol's."""
    if len(content) < struct.calcsize(">h"):
        return ()
    try:
        assignment: Any
        assignment, _ = entity_reader(ConsumerProtocolAssignment)(content, struct.calcsize(">h"))
    except (DecodeError, ValueError, EOFError, IndexError, OverflowError, struct.error):
        return ()
    return tuple(
        Place(part.topic, index) for part in assignment.assigned_partitions for index in sorted(part.partitions)
    )
