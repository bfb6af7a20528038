"""The history of a produce workload, and the rules for a correct history.

Producers record each record before they send it, and its outcome afterwards. After the workload, the checker reads the
log back and compares it with the history. The rules:

- Every acknowledged offset is distinct.
- Every acknowledged record is stored exactly once, at the acknowledged offset.
- A record without an acknowledgement is stored at most once.
- A rejected record is not stored.
- The log contains only records that were sent, at consecutive offsets.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Position(NamedTuple):
    partition: int
    offset: int


class Stored(NamedTuple):
    """One record from a consumer."""

    position: Position
    record_id: str


@dataclass(slots=True)
class History:
    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, list[Position]] = field(default_factory=lambda: defaultdict(list))
    """A request that is repeated with the same Idempotency-Key may be acknowledged several times."""
    refused: set[str] = field(default_factory=set)

    def send(self, record_id: str) -> None:
        self.sent.add(record_id)

    def acknowledge(self, record_id: str, partition: int, offset: int) -> None:
        self.acknowledged[record_id].append(Position(partition, offset))

    def refuse(self, record_id: str) -> None:
        self.refused.add(record_id)

    def violations(self, stored: Iterable[Stored]) -> list[str]:
        """Return one line for each violation. The list is empty if the history is correct."""
        positions: dict[str, list[Position]] = defaultdict(list)
        offsets: dict[int, list[int]] = defaultdict(list)
        for position, record_id in stored:
            positions[record_id].append(position)
            offsets[position.partition].append(position.offset)
        return [
            *self._shared_offsets(),
            *self._lost_or_moved(positions),
            *(f"{name} is stored {len(at)} times: {at}" for name, at in positions.items() if len(at) > 1),
            *(f"{name} was refused, but is stored at {positions[name]}" for name in self.refused & positions.keys()),
            *(f"{name} is stored, but nobody sent it" for name in positions.keys() - self.sent),
            *_gaps(offsets),
        ]

    def _shared_offsets(self) -> Iterable[str]:
        owners: dict[Position, set[str]] = defaultdict(set)
        for record_id, acknowledged in self.acknowledged.items():
            for position in acknowledged:
                owners[position].add(record_id)
        for position, names in owners.items():
            if len(names) > 1:
                yield f"{position} was acknowledged to {len(names)} records: {sorted(names)}"

    def _lost_or_moved(self, positions: dict[str, list[Position]]) -> Iterable[str]:
        for record_id, acknowledged in self.acknowledged.items():
            if record_id not in positions:
                yield f"{record_id} was acknowledged at {acknowledged}, but is not stored"
                continue
            for position in set(acknowledged) - set(positions[record_id]):
                yield f"{record_id} was acknowledged at {position}, but is stored at {positions[record_id]}"


def _gaps(offsets: dict[int, list[int]]) -> Iterable[str]:
    for partition, found in offsets.items():
        if sorted(found) != list(range(len(found))):
            missing = sorted(set(range(max(found) + 1)) - set(found))
            yield f"partition {partition} has no offsets {missing[:10]}, or repeats one"
