"""Resets the committed offsets of a group. `plan` is a pure function. `reset_offsets` sends the requests.

Offsets are clamped to the partition, as in kafka-consumer-groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headgate.kafka_client.admin.groups import commit_offsets, committed_offsets, find_group
from headgate.kafka_client.admin.offsets import Place, bounds, list_offsets, still_there
from headgate.kafka_client.admin.topics import find_topics
from headgate.kafka_client.errors import GroupNotEmpty, GroupNotFound, NothingCommitted, ResourceNotFound
from headgate.kafka_client.request_client import RequestClient


class Aim(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    SHIFT = "shift_by"


@dataclass(frozen=True, slots=True)
class Target:
    aim: Aim
    number: int = 0
    """An offset, a timestamp in milliseconds, or a number of records."""


@dataclass(frozen=True, slots=True)
class Move:
    place: Place
    before: int | None
    wanted: int | None
    """The offset before clamping. None if all records are older than the timestamp."""
    after: int
    log_end_offset: int


def plan(
    target: Target,
    places: Iterable[Place],
    committed: Mapping[Place, int],
    limits: Mapping[Place, tuple[int, int]],
    at_time: Mapping[Place, int],
) -> list[Move]:
    """`at_time` contains the offsets for the target's timestamp, or -1 if all records are older.

    Raises NothingCommitted.
    """
    return [_move(target, place, committed.get(place), limits[place], at_time.get(place, -1)) for place in places]


def _move(target: Target, place: Place, before: int | None, limits: tuple[int, int], at_time: int) -> Move:
    start, end = limits
    wanted: int | None
    match target.aim:
        case Aim.EARLIEST:
            wanted = start
        case Aim.LATEST:
            wanted = end
        case Aim.OFFSET:
            wanted = target.number
        case Aim.TIMESTAMP:
            wanted = None if at_time < 0 else at_time
        case Aim.SHIFT:
            if before is None:
                raise NothingCommitted(f"The group has no committed offset for {place} to shift from.")
            wanted = before + target.number
    return Move(place, before, wanted, end if wanted is None else min(max(wanted, start), end), end)


async def reset_offsets(
    client: RequestClient, group_id: str, target: Target, wanted: Mapping[str, Sequence[int]], *, validate_only: bool
) -> list[Move]:
    """Resets the given partitions.

    Without partitions, resets all partitions of the topic. Without a topic, resets all committed partitions.
    Creates a missing group. Raises GroupNotEmpty while the group has members.
    """
    try:
        group = await find_group(client, group_id)
    except GroupNotFound:
        if not wanted:
            raise
    else:
        if group.consumers:
            raise GroupNotEmpty(f"Consumer Group {group_id} has {len(group.consumers)} members; stop them first.")
    committed = await committed_offsets(client, group_id)
    places = await _places(client, wanted) if wanted else await still_there(client, committed)
    if not places:
        raise ResourceNotFound("Consumer group offsets could not be found.")
    limits = await bounds(client, places)
    at_time: dict[Place, int] = {}
    if target.aim is Aim.TIMESTAMP:
        at_time = await list_offsets(client, dict.fromkeys(places, target.number))
    moves = plan(target, places, committed, limits, at_time)
    if not validate_only:
        await commit_offsets(client, group_id, {move.place: move.after for move in moves})
    return moves


async def _places(client: RequestClient, wanted: Mapping[str, Sequence[int]]) -> list[Place]:
    topics = await find_topics(client, sorted(wanted))
    places: set[Place] = set()
    for name, partitions in wanted.items():
        named = [topics[name].partition(index) for index in partitions]
        places |= {Place(name, each.index) for each in named or topics[name].partitions}
    return sorted(places)
