"""Start and end positions: startingOffsets, endingOffsets and the options by timestamp. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from aiokafka.structs import TopicPartition

from headgate.spark_udfs.source import offsets
from headgate.spark_udfs.source.errors import BadOption

EARLIEST = -2
LATEST = -1
"""EARLIEST and LATEST are special offsets in Kafka's ListOffsets and in the JSON of users."""


class Edge(Enum):
    START = "starting"
    END = "ending"


class NoMatch(Enum):
    """The start position if all records are older than the timestamp."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class AtEdge:
    """The start or the end of every partition."""

    where: int
    """EARLIEST or LATEST."""


@dataclass(frozen=True, slots=True)
class AtOffsets:
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets by partition. EARLIEST and LATEST are allowed."""


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first record at or after a timestamp in milliseconds: one timestamp for all partitions, or one for each."""

    by_partition: Mapping[TopicPartition, int] | None
    everywhere: int | None = None
    no_match: NoMatch = NoMatch.ERROR


Position = AtEdge | AtOffsets | AtTimes


def read_position(edge: Edge, options: Mapping[str, str], *, is_streaming: bool) -> Position:
    """Parses options with lower-case names. Precedence as in Spark: timestamp, offsets by timestamp, offsets."""
    names = {kind: f"{edge.value}{kind}" for kind in ("Timestamp", "OffsetsByTimestamp", "Offsets")}
    found = {kind: options[name.lower()] for kind, name in names.items() if name.lower() in options}
    if edge is Edge.END and is_streaming and found:
        name = names[next(iter(found))]
        raise BadOption(name, "a stream has no end; leave it out, or read with spark.read")
    no_match = _no_match(options) if edge is Edge.START else NoMatch.LATEST
    if "Timestamp" in found:
        return AtTimes(None, _time(names["Timestamp"], found["Timestamp"]), no_match)
    if "OffsetsByTimestamp" in found:
        name = names["OffsetsByTimestamp"]
        return AtTimes(_by_partition(name, found["OffsetsByTimestamp"], least=0), None, no_match)
    if "Offsets" in found:
        return _read_offsets(edge, names["Offsets"], found["Offsets"].strip(), is_streaming=is_streaming)
    return AtEdge(EARLIEST if edge is Edge.START and not is_streaming else LATEST)


def name_of(edge: Edge, position: Position) -> str:
    """Returns the name of the option that sets a position."""
    if isinstance(position, AtTimes):
        return f"{edge.value}{'Timestamp' if position.by_partition is None else 'OffsetsByTimestamp'}"
    return f"{edge.value}Offsets"


def _read_offsets(edge: Edge, name: str, text: str, *, is_streaming: bool) -> Position:
    forbidden = {Edge.START: None if is_streaming else LATEST, Edge.END: EARLIEST}[edge]
    word = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if word is not None:
        if word == forbidden:
            raise BadOption(name, f"{text} would read nothing in a batch query")
        return AtEdge(word)
    if not text.startswith("{"):
        raise BadOption(
            name, f'it must be earliest, latest or JSON such as {{"orders": {{"0": 23}}}}, not {text[:60]!r}'
        )
    by_partition = _by_partition(name, text, least=EARLIEST)
    for at, number in by_partition.items():
        if number == forbidden:
            word_of = "latest (-1)" if number == LATEST else "earliest (-2)"
            raise BadOption(name, f"{word_of} for {at.topic}-{at.partition} would read nothing in a batch query")
    return AtOffsets(by_partition)


def _by_partition(name: str, text: str, *, least: int) -> offsets.Offsets:
    try:
        return offsets.read(text, least=least)
    except ValueError as error:
        raise BadOption(name, str(error)) from None


def _time(name: str, text: str) -> int:
    number = text.strip()
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise BadOption(name, f"it must be a time in milliseconds since 1970, not {text[:60]!r}")
    return int(number)


def _no_match(options: Mapping[str, str]) -> NoMatch:
    name = "startingOffsetsByTimestampStrategy"
    text = options.get(name.lower(), "error").strip().lower()
    try:
        return NoMatch(text)
    except ValueError:
        raise BadOption(name, f"it must be error or latest, not {text[:60]!r}") from None
