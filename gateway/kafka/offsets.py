"""Offsets of partitions: where they start and end, and where a moment lies (ListOffsets)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from gateway.kafka.cluster import Cluster
from gateway.kafka.errors import Refused, check
from gateway.kafka.messages import Api
from gateway.kafka.topics import Topic, find_topics

LATEST = -1
EARLIEST = -2

# A partition without a leader gets one within moments, or is broken.
leader_attempts_max = 20
leader_retry_seconds = 0.25


@dataclass(frozen=True, slots=True, order=True)
class Place:
    topic: str
    partition: int


async def list_offsets(cluster: Cluster, times: Mapping[Place, int], *, committed: bool = False) -> dict[Place, int]:
    """The offset at each place for LATEST, EARLIEST or the first record not older than a timestamp (-1 if none).

    `committed` ends a partition before its first open transaction, as a reader of committed records does.
    """
    for attempt in range(leader_attempts_max):
        try:
            return await _list_offsets(cluster, times, committed)
        except Refused as error:
            if not error.code.retriable or attempt == leader_attempts_max - 1:
                raise
        await asyncio.sleep(leader_retry_seconds)
    raise AssertionError("the last attempt returns or raises")


async def _list_offsets(cluster: Cluster, times: Mapping[Place, int], committed: bool) -> dict[Place, int]:
    topics = {topic.name: topic for topic in await find_topics(cluster, sorted({place.topic for place in times}))}
    by_leader: dict[int, dict[str, list[Mapping[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for place, when in times.items():
        asked = {"partition_index": place.partition, "current_leader_epoch": -1, "timestamp": when}
        by_leader[_leader(topics[place.topic], place)][place.topic].append(asked)
    found: dict[Place, int] = {}
    for leader, asked_topics in by_leader.items():
        request = {
            "replica_id": -1,
            "isolation_level": int(committed),
            "topics": [{"name": name, "partitions": partitions} for name, partitions in asked_topics.items()],
        }
        answer = await cluster.ask(Api.LIST_OFFSETS, request, leader)
        for topic in answer.topics:
            for partition in topic.partitions:
                place = Place(topic.name, partition.partition_index)
                check(f"partition {place.partition} of topic {place.topic}", partition.error_code)
                found[place] = partition.offset
    return found


def _leader(topic: Topic, place: Place) -> int:
    subject = f"partition {place.partition} of topic {place.topic}"
    for partition in topic.partitions:
        if partition.index == place.partition:
            if partition.leader < 0:
                raise Refused(subject, ErrorCode.leader_not_available)
            return partition.leader
    last = len(topic.partitions) - 1
    # Not Kafka's retriable code: asking again will not make the partition.
    raise Refused(subject, ErrorCode.invalid_partitions, f"no such partition; the topic has 0 to {last}")


async def bounds(cluster: Cluster, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """The first offset and the one after the last, by place."""
    wanted = list(places)
    start = await list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    end = await list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    return {place: (start[place], end[place]) for place in wanted}


def places_of(topics: Iterable[Topic]) -> list[Place]:
    return [Place(topic.name, partition.index) for topic in topics for partition in topic.partitions]
