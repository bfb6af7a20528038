"""The coordinators of all consumer groups: the leaders of the partitions of `__consumer_offsets`.

A broker that has just become a leader lists none of the groups in the partition until it starts to load them. It
reports no error. Other requests do report it: DescribeGroups returns NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final

from kio.schema.errors import ErrorCode

from headgate.kafka_client.admin.retries import settled
from headgate.kafka_client.admin.topics import describe_cluster, find_topics
from headgate.kafka_client.errors import NotAuthorized, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api

OFFSETS_TOPIC: Final = "__consumer_offsets"
# Kafka's default is 50. A larger topic is checked in its first partitions only.
partitions_checked_max: Final = 1000
_NOT_LOADED: Final = (
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
)


@dataclass(frozen=True, slots=True)
class Coordinator:
    node: int
    probes: tuple[str, ...]
    """One group id for each partition that the broker leads. Such groups need not exist."""


async def find_coordinator(client: RequestClient, group: str) -> int:
    """Returns the node id of the group's coordinator."""

    async def find() -> int:
        found = await client.send(Api.FIND_COORDINATOR, {"key": group, "key_type": 0})
        check(found.error_code, found.error_message, f"coordinator of group {group}")
        return int(found.node_id)

    return await settled(find)


async def find_coordinators(client: RequestClient) -> list[Coordinator]:
    """Returns the leaders of the offsets topic. Returns all brokers, without probes, if the topic is not visible."""
    try:
        topic = (await find_topics(client, [OFFSETS_TOPIC], missing_ok=True)).get(OFFSETS_TOPIC)
    except NotAuthorized:
        topic = None
    if topic is None or not topic.partitions:
        return [Coordinator(broker.id, ()) for broker in (await describe_cluster(client)).brokers]
    ids = probe_ids(len(topic.partitions))
    probes: dict[int, list[str]] = defaultdict(list)
    for partition in topic.partitions:
        # A partition without a leader stays offline until one of its replicas returns. Its groups cannot be read.
        if partition.leader >= 0:
            probes[partition.leader] += ids[partition.index : partition.index + 1]
    return [Coordinator(node, tuple(found)) for node, found in sorted(probes.items())]


async def check_loaded(client: RequestClient, coordinator: Coordinator) -> None:
    """Raises NotReady if the broker does not coordinate all groups in the partitions that it leads."""
    if not coordinator.probes:
        return
    answer = await client.send(Api.DESCRIBE_GROUPS, {"groups": list(coordinator.probes)}, coordinator.node)
    for row in answer.groups:
        if row.error_code in _NOT_LOADED:
            check(row.error_code, None, f"groups of broker {coordinator.node}")


@cache
def probe_ids(partitions: int) -> tuple[str, ...]:
    """Returns one group id for each partition of the offsets topic, up to `partitions_checked_max`."""
    wanted = min(partitions, partitions_checked_max)
    found: dict[int, str] = {}
    for number in count():
        if len(found) == wanted:
            break
        group = f"headgate-probe-{number}"
        partition = offsets_partition(group, partitions)
        if partition < wanted:
            found.setdefault(partition, group)
    return tuple(found[partition] for partition in range(wanted))


def offsets_partition(group: str, partitions: int) -> int:
    """Returns the partition of the offsets topic that stores the group: the hash code of Java, modulo partitions."""
    code = 0
    units = group.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    # As a signed integer, Java's smallest one has no absolute value: Kafka replaces it by 0.
    return (0 if code == 2**31 else min(code, 2**32 - code)) % partitions
