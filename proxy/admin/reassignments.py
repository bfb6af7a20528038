"""Partition reassignments in progress (ListPartitionReassignments, KIP-455)."""

from dataclasses import dataclass

from headgate.kafka_client.requests import Api
from headgate.proxy.admin.cluster import AdminCluster
from headgate.proxy.admin.refusals import check
from headgate.proxy.admin.topics import Topic


@dataclass(frozen=True, slots=True)
class Reassignment:
    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def list_reassignments(cluster: AdminCluster, topic: Topic | None = None) -> list[Reassignment]:
    """Returns the reassignments of one topic, or of all topics."""
    wanted = None
    if topic is not None:
        wanted = [{"name": topic.name, "partition_indexes": [each.index for each in topic.partitions]}]
    answer = await cluster.ask(
        Api.LIST_PARTITION_REASSIGNMENTS, {"timeout": cluster.request_timeout_ms, "topics": wanted}
    )
    check(answer.error_code, answer.error_message, "reassignments")
    found = [
        Reassignment(each.name, row.partition_index, tuple(row.adding_replicas), tuple(row.removing_replicas))
        for each in answer.topics
        for row in each.partitions
    ]
    return sorted(found, key=lambda each: (each.topic, each.partition))
