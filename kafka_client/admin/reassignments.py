"""Partition reassignments in progress (ListPartitionReassignments, KIP-455)."""

from dataclasses import dataclass

from headgate.kafka_client.admin.topics import Topic
from headgate.kafka_client.errors import check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


@dataclass(frozen=True, slots=True)
class Reassignment:
    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def list_reassignments(client: RequestClient, topic: Topic | None = None) -> list[Reassignment]:
    """Returns the reassignments of one topic, or of all topics."""
    wanted = None
    if topic is not None:
        wanted = [{"name": topic.name, "partition_indexes": [each.index for each in topic.partitions]}]
    answer = await client.send(
        Api.LIST_PARTITION_REASSIGNMENTS, {"timeout": client.request_timeout_ms, "topics": wanted}
    )
    check(answer.error_code, answer.error_message, "reassignments")
    found = [
        Reassignment(each.name, row.partition_index, tuple(row.adding_replicas), tuple(row.removing_replicas))
        for each in answer.topics
        for row in each.partitions
    ]
    return sorted(found, key=lambda each: (each.topic, each.partition))
