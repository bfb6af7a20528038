"""Offsets of partitions (ListOffsets), and deletion of records (DeleteRecords)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.kafka_client.admin.retries import settled
from headgate.kafka_client.admin.topics import Topic, find_topics
from headgate.kafka_client.errors import LeaderNotFound, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api

LATEST: Final = -1
EARLIEST: Final = -2
# In DeleteRecords: delete all records up to the high watermark.
HIGH_WATERMARK: Final = -1


@dataclass(frozen=True, slots=True, order=True)
class Place:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic}"


async def list_offsets(
    client: RequestClient, times: Mapping[Place, int], *, committed: bool = False
) -> dict[Place, int]:
    """Returns the offset for LATEST, EARLIEST or a timestamp.

    A timestamp selects the first record at or after it, or -1 if all records are older.
    With `committed`, LATEST is the last stable offset.
    Raises TopicNotFound, PartitionNotFound, LeaderNotFound.
    """

    async def ask() -> dict[Place, int]:
        topics = await find_topics(client, sorted({place.topic for place in times}))
        by_leader: dict[int, dict[str, list[Mapping[str, object]]]] = defaultdict(lambda: defaultdict(list))
        for place, when in times.items():
            asked = {"partition_index": place.partition, "current_leader_epoch": -1, "timestamp": when}
            by_leader[leader_of(topics[place.topic], place)][place.topic].append(asked)
        found: dict[Place, int] = {}
        for leader, asked_topics in by_leader.items():
            request = {
                "replica_id": -1,
                "isolation_level": int(committed),
                "topics": [{"name": name, "partitions": rows} for name, rows in asked_topics.items()],
            }
            answer = await client.send(Api.LIST_OFFSETS, request, leader)
            for topic in answer.topics:
                for row in topic.partitions:
                    place = Place(topic.name, row.partition_index)
                    check(row.error_code, None, str(place))
                    found[place] = row.offset
        return found

    return await settled(ask) if times else {}


async def bounds(client: RequestClient, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """Returns the first offset and the next offset of each partition."""
    wanted = list(places)
    start = await list_offsets(client, dict.fromkeys(wanted, EARLIEST))
    end = await list_offsets(client, dict.fromkeys(wanted, LATEST))
    return {place: (start[place], end[place]) for place in wanted}


async def purge(client: RequestClient, before: Mapping[Place, int]) -> dict[Place, int]:
    """Deletes the records before an offset (HIGH_WATERMARK: all records). Returns the new first offsets."""
    topics = await find_topics(client, sorted({place.topic for place in before}))
    by_leader: dict[int, dict[str, list[Mapping[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for place, offset in before.items():
        leader = leader_of(topics[place.topic], place)
        by_leader[leader][place.topic].append({"partition_index": place.partition, "offset": offset})
    starts: dict[Place, int] = {}
    for leader, asked in by_leader.items():
        request = {
            "topics": [{"name": name, "partitions": rows} for name, rows in asked.items()],
            "timeout": client.request_timeout_ms,
        }
        answer = await client.send(Api.DELETE_RECORDS, request, leader)
        for topic in answer.topics:
            for row in topic.partitions:
                place = Place(topic.name, row.partition_index)
                check(row.error_code, None, str(place))
                starts[place] = row.low_watermark
    return starts


def places_of(topic: Topic) -> list[Place]:
    return [Place(topic.name, each.index) for each in topic.partitions]


async def still_there(client: RequestClient, places: Iterable[Place]) -> list[Place]:
    """Returns the partitions that still exist and have a leader."""
    wanted = sorted(places)
    topics = await find_topics(client, sorted({place.topic for place in wanted}), missing_ok=True)
    there = {
        Place(topic.name, each.index) for topic in topics.values() for each in topic.partitions if each.leader >= 0
    }
    return [place for place in wanted if place in there]


def leader_of(topic: Topic, place: Place) -> int:
    """Raises PartitionNotFound, LeaderNotFound."""
    leader = topic.partition(place.partition).leader
    if leader < 0:
        raise LeaderNotFound(f"No leader for {place}.")
    return leader
