"""Where a read begins and where it ends: the offsets that a request's words stand for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.proxy.errors import BadRequest
from headgate.proxy.reading.cluster import EARLIEST, LATEST, Cluster, Isolation

POSITIONS_CHARS_MAX: Final = 100_000
"""Partitions and offsets in an address or a header."""
_POSITION: Final = re.compile(r"([0-9]{1,10}):([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Start:
    """One of these counts; the beginning if all are None."""

    positions: Mapping[int, int] | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    last: int | None = None
    """So many records before the end of each partition."""


@dataclass(frozen=True, slots=True)
class Plan:
    positions: dict[int, int]
    ends: dict[int, int]
    """The ends as they were when the read began."""


def read_positions(text: str, name: str) -> dict[int, int]:
    """`0:15,1:20`. Raises BadRequest."""
    if len(text) > POSITIONS_CHARS_MAX:
        raise BadRequest(f"{name} has more than {POSITIONS_CHARS_MAX} characters.")
    found: dict[int, int] = {}
    for part in text.split(","):
        match = _POSITION.fullmatch(part.strip())
        if match is None:
            raise BadRequest(f"{name} must be like 0:15,1:20, partition and next offset, not {text[:60]!r}.")
        found[int(match[1])] = int(match[2])
    return found


async def make_plan(
    cluster: Cluster, topic: str, partitions: Sequence[int], start: Start, isolation: Isolation
) -> Plan:
    """Raises TopicNotFound, BrokerUnavailable and their kin. Offsets outside of the log move to its nearer end."""
    begins = await cluster.offsets(topic, dict.fromkeys(partitions, EARLIEST), isolation)
    ends = await cluster.offsets(topic, dict.fromkeys(partitions, LATEST), isolation)
    first = {partition: begins[partition] or 0 for partition in partitions}
    after = {partition: max(ends[partition] or 0, first[partition]) for partition in partitions}
    wanted: dict[int, int]
    if start.positions is not None:
        # A partition that is not named was not there when the positions were taken.
        wanted = {partition: start.positions.get(partition, first[partition]) for partition in partitions}
    elif start.offset is not None:
        wanted = dict.fromkeys(partitions, start.offset)
    elif start.timestamp_ms is not None:
        found = await cluster.offsets(topic, dict.fromkeys(partitions, start.timestamp_ms), isolation)
        wanted = {partition: after[partition] if at is None else at for partition, at in found.items()}
    elif start.last is not None:
        wanted = {partition: after[partition] - start.last for partition in partitions}
    else:
        wanted = first
    return Plan(
        {partition: min(max(at, first[partition]), after[partition]) for partition, at in wanted.items()}, after
    )
