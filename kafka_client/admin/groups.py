"""Consumer groups: describes and deletes groups, and reads, commits and deletes their offsets.

ConsumerGroupDescribe describes groups of the consumer protocol (KIP-848). DescribeGroups describes classic groups.
Only the coordinator knows the type of a group.
"""

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from headgate.kafka_client.admin.coordinators import check_loaded, find_coordinator, find_coordinators
from headgate.kafka_client.admin.offsets import Place
from headgate.kafka_client.admin.retries import settled
from headgate.kafka_client.errors import ApiUnsupported, KafkaClientError, ResourceNotFound, broker_error, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api

CLASSIC: Final = "CLASSIC"
CONSUMER: Final = "CONSUMER"
# Protocol types of consumer groups. A group that only commits offsets has an empty type. Kafka Connect has other types.
_CONSUMERS: Final = frozenset({"consumer", ""})
_NO_OFFSET: Final = -1
_CLASSIC_MEMBER: Final = 0
# Groups per request. The response contains all members of these groups, so it can be large.
groups_per_question_max: Final = 200


@dataclass(frozen=True, slots=True)
class Consumer:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    type: str
    state: str
    """Confluent's name of the state: STABLE, EMPTY, PREPARING_REBALANCE and so on."""
    is_simple: bool
    is_mixed: bool
    """True for a group of the consumer protocol that has classic members."""
    assignor: str
    coordinator: int
    consumers: tuple[Consumer, ...]

    def consumer(self, consumer_id: str) -> Consumer:
        for consumer in self.consumers:
            if consumer.id == consumer_id:
                return consumer
        raise ResourceNotFound(f"Consumer {consumer_id} cannot be found in group {self.id}.")

    def owners(self) -> dict[Place, Consumer]:
        return {place: consumer for consumer in self.consumers for place in consumer.assignment}


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """An entry of ListGroups, with Kafka's names. Fields that an old broker does not send are None."""

    id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator: int


async def list_any_groups(client: RequestClient) -> list[ListedGroup]:
    """Returns all groups of all coordinators. Retries while coordinators move between brokers."""
    return await settled(lambda: _list_any_groups(client))


async def _list_any_groups(client: RequestClient) -> list[ListedGroup]:
    groups: list[ListedGroup] = []
    for coordinator in await find_coordinators(client):
        # The list is complete only if the broker coordinates all of its partitions before and after the request.
        await check_loaded(client, coordinator)
        answer = await client.send(Api.LIST_GROUPS, {}, coordinator.node)
        check(answer.error_code, None, f"groups of broker {coordinator.node}")
        await check_loaded(client, coordinator)
        for row in answer.groups:
            state, kind = getattr(row, "group_state", None), getattr(row, "group_type", None)
            groups.append(ListedGroup(row.group_id, row.protocol_type, state, kind, coordinator.node))
    return sorted(groups, key=lambda group: group.id)


async def list_groups(client: RequestClient) -> list[Group]:
    """Returns the consumer groups of all brokers. Retries while coordinators move between brokers."""
    return await settled(lambda: _list_groups(client))


async def _list_groups(client: RequestClient) -> list[Group]:
    ids: dict[int, list[str]] = defaultdict(list)
    for listed in await _list_any_groups(client):
        # Share and streams groups are not consumer groups.
        if listed.protocol_type in _CONSUMERS and (listed.type or CLASSIC).upper() in (CLASSIC, CONSUMER):
            ids[listed.coordinator].append(listed.id)
    groups: list[Group] = []
    for node, wanted in ids.items():
        for start in range(0, len(wanted), groups_per_question_max):
            groups += await _describe(client, wanted[start : start + groups_per_question_max], node)
    return sorted(groups, key=lambda group: group.id)


async def find_group(client: RequestClient, group_id: str) -> Group:
    """Raises GroupNotFound."""

    async def find() -> list[Group]:
        return await _describe(client, [group_id], await find_coordinator(client, group_id))

    for group in await settled(find):
        return group
    raise _no_group(group_id)


async def committed_offsets(client: RequestClient, group_id: str) -> dict[Place, int]:
    """Returns all committed offsets of the group."""

    async def ask() -> Any:
        node = await find_coordinator(client, group_id)
        answer = await client.send(Api.OFFSET_FETCH, {"group_id": group_id, "topics": None}, node)
        check(answer.error_code, None, f"group {group_id}")
        return answer

    found: dict[Place, int] = {}
    for topic in (await settled(ask)).topics:
        for row in topic.partitions:
            place = Place(topic.name, row.partition_index)
            check(row.error_code, None, f"group {group_id}, {place}")
            if row.committed_offset != _NO_OFFSET:
                found[place] = row.committed_offset
    return found


async def commit_offsets(client: RequestClient, group_id: str, offsets: Mapping[Place, int]) -> None:
    """Commit offsets for a group without members. Raises GroupNotEmpty if it has members."""
    topics: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for place, offset in offsets.items():
        topics[place.topic].append(
            {"partition_index": place.partition, "committed_offset": offset, "committed_metadata": ""}
        )
    request = {
        "group_id": group_id,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
    }
    await settled(lambda: _change_offsets(client, Api.OFFSET_COMMIT, request))


async def delete_group(client: RequestClient, group_id: str) -> None:
    """Delete the group and its committed offsets. Raises GroupNotFound, GroupNotEmpty."""

    async def delete() -> None:
        node = await find_coordinator(client, group_id)
        answer = await client.send(Api.DELETE_GROUPS, {"groups_names": [group_id]}, node)
        for result in answer.results:
            if result.error_code is ErrorCode.group_id_not_found:
                raise _no_group(group_id)
            message = None
            if result.error_code is ErrorCode.non_empty_group:
                message = f"Consumer Group {group_id} has members; stop them first."
            check(result.error_code, message, f"group {group_id}")

    await settled(delete)


async def delete_offsets(client: RequestClient, group_id: str, places: Iterable[Place]) -> None:
    """Delete committed offsets. Raises GroupNotFound, and GroupNotEmpty while members subscribe to the topic."""
    topics: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for place in places:
        topics[place.topic].append({"partition_index": place.partition})
    request = {
        "group_id": group_id,
        "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
    }
    await settled(lambda: _change_offsets(client, Api.OFFSET_DELETE, request))


async def _change_offsets(client: RequestClient, api: Api, request: Mapping[str, object]) -> None:
    group_id = str(request["group_id"])
    answer = await client.send(api, request, await find_coordinator(client, group_id))
    check(getattr(answer, "error_code", ErrorCode.none), None, f"group {group_id}")
    for topic in answer.topics:
        for row in topic.partitions:
            check(row.error_code, None, f"group {group_id}, {Place(topic.name, row.partition_index)}")


async def _describe(client: RequestClient, ids: list[str], node: int) -> list[Group]:
    """Returns the consumer groups with the given ids on one node."""
    groups, classic = await _describe_new(client, ids, node)
    if classic:
        answer = await client.send(Api.DESCRIBE_GROUPS, {"groups": classic}, node)
        for row in answer.groups:
            if row.error_code is ErrorCode.group_id_not_found:
                continue
            check(row.error_code, getattr(row, "error_message", None), f"group {row.group_id}")
            # Kafka up to 3.8 reports a missing group as a dead group without a protocol type.
            absent = row.group_state == "Dead" and not row.protocol_type
            if not absent and row.protocol_type in _CONSUMERS:
                groups.append(_classic_group(row, node))
    return groups


async def _describe_new(client: RequestClient, ids: list[str], node: int) -> tuple[list[Group], list[str]]:
    """Returns the groups of the consumer protocol, and the ids of all other groups."""
    try:
        answer = await client.send(Api.CONSUMER_GROUP_DESCRIBE, {"group_ids": ids}, node)
    except ApiUnsupported:
        return [], ids
    groups: list[Group] = []
    rest: list[str] = []
    for row in answer.groups:
        if row.error_code in (ErrorCode.group_id_not_found, ErrorCode.unsupported_version):
            rest.append(row.group_id)
            continue
        check(row.error_code, row.error_message, f"group {row.group_id}")
        consumers = [
            Consumer(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                tuple(
                    Place(part.topic_name, index)
                    for part in each.assignment.topic_partitions
                    for index in part.partitions
                ),
            )
            for each in row.members
        ]
        mixed = any(getattr(each, "member_type", -1) == _CLASSIC_MEMBER for each in row.members)
        groups.append(
            Group(
                row.group_id, CONSUMER, _state(row.group_state), False, mixed, row.assignor_name, node, tuple(consumers)
            )
        )
    return groups, rest


def _classic_group(row: Any, node: int) -> Group:
    consumers = [
        Consumer(
            each.member_id,
            getattr(each, "group_instance_id", None),
            each.client_id,
            each.client_host.removeprefix("/"),
            _assignment(each.member_assignment),
        )
        for each in row.members
    ]
    simple = not row.protocol_type
    return Group(
        row.group_id, CLASSIC, _state(row.group_state), simple, False, row.protocol_data, node, tuple(consumers)
    )


def _no_group(group_id: str) -> KafkaClientError:
    message = f"Consumer Group {group_id} could not be found."
    return broker_error(ErrorCode.group_id_not_found, message, f"group {group_id}")


def _state(name: str) -> str:
    """PreparingRebalance → PREPARING_REBALANCE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() or "UNKNOWN"


def _assignment(content: bytes) -> tuple[Place, ...]:
    """Returns the partitions of a member's assignment. Returns none for assignments of other protocols."""
    version = struct.calcsize(">h")
    if len(content) < version:
        return ()
    try:
        assignment: Any
        assignment, _ = entity_reader(ConsumerProtocolAssignment)(content, version)
    except (DecodeError, ValueError, EOFError, IndexError, OverflowError, struct.error):
        return ()
    return tuple(
        Place(part.topic, index) for part in assignment.assigned_partitions for index in sorted(part.partitions)
    )
