"""Start and end offsets of a read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.kafka_client.fetch import EARLIEST, LATEST, Isolation
from headgate.proxy.errors import BadRequest
from headgate.proxy.reading.cluster import Cluster

POSITIONS_CHARS_MAX: Final = 100_000
"""Maximum length of positions in a query parameter or header."""
_POSITION: Final = re.compile(r"([0-9]{1,10}):([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Start:
    """At most one field is set. The default is the beginning."""

    positions: Mapping[int, int] | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    last: int | None = None
    """Number of records before the end of each partition."""


@dataclass(frozen=True, slots=True)
class Plan:
    positions: dict[int, int]
    ends: dict[int, int]
    """End offsets at the start of the read."""


def read_positions(text: str, name: str) -> dict[int, int]:
    """Parses positions in the format `0:15,1:20`. Raises BadRequest."""
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
    """Clamps offsets to the log. Raises TopicNotFound, BrokerUnavailable and other ProxyErrors."""
    begins = await cluster.offsets(topic, dict.fromkeys(partitions, EARLIEST), isolation)
    ends = await cluster.offsets(topic, dict.fromkeys(partitions, LATEST), isolation)
    first = {partition: begins[partition] or 0 for partition in partitions}
    after = {partition: max(ends[partition] or 0, first[partition]) for partition in partitions}
    wanted: dict[int, int]
    if start.positions is not None:
        # A partition without a position was created later. Read it from the beginning.
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
