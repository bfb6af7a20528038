"""Where a reset would take a group's offsets. Pure: what is known of the partitions comes in, the plan goes out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from gateway.kafka.offsets import Place


class Aim(Enum):
    EARLIEST = auto()
    LATEST = auto()
    OFFSET = auto()
    SHIFT = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class Target:
    aim: Aim
    number: int = 0
    """The offset, the shift or the timestamp in milliseconds."""


@dataclass(frozen=True, slots=True)
class Move:
    place: Place
    before: int | None
    after: int
    end: int
    note: str = ""

    @property
    def lag(self) -> int:
        """What the group will have left to read."""
        return self.end - self.after


class NothingCommitted(ValueError):
    """A shift needs something to shift from."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"the group has committed nothing for partition {place.partition} of topic {place.topic}")


def plan(
    target: Target,
    places: Iterable[Place],
    committed: Mapping[Place, int],
    bounds: Mapping[Place, tuple[int, int]],
    at_time: Mapping[Place, int],
) -> list[Move]:
    """`at_time` holds the offsets of the target's timestamp, -1 for none so late. Raises NothingCommitted."""
    return [_move(target, place, committed.get(place), bounds[place], at_time.get(place, -1)) for place in places]


def _move(target: Target, place: Place, before: int | None, limits: tuple[int, int], at_time: int) -> Move:
    start, end = limits
    match target.aim:
        case Aim.EARLIEST:
            wanted = start
        case Aim.LATEST:
            wanted = end
        case Aim.OFFSET:
            wanted = target.number
        case Aim.TIME:
            wanted = end if at_time < 0 else at_time
        case Aim.SHIFT:
            if before is None:
                raise NothingCommitted(place)
            wanted = before + target.number
    after = min(max(wanted, start), end)
    note = ""
    if wanted < start:
        note = f"{wanted} is before the start"
    elif wanted > end:
        note = f"{wanted} is behind the end"
    elif target.aim is Aim.TIME and at_time < 0:
        note = "nothing so late; the end"
    return Move(place, before, after, end, note)
