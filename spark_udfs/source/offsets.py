"""Offsets of topic partitions in a Spark checkpoint: `{"orders": {"0": 23, "1": 345}}`. No I/O.

The format is that of Spark's Kafka source. The offset of a partition is the offset of the next record to read. Other
state of a stream has keys that are not valid topic names. Spark compares offsets as text, so the keys are sorted.
`spark_udfs.source.cluster` requests offsets from the brokers.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.structs import TopicPartition

Offsets = dict[TopicPartition, int]
TopicIds = dict[str, str]
"""Topic ids by topic name. Brokers before Kafka 2.8 have no topic ids."""

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
INITIAL = "$initial"
"""Key of the start offsets in the end offset of a query's first batch.

Spark stores only the end of a batch. To repeat the first batch, Spark requests the start again. With "latest", that
start would differ from the original one."""
TOPIC_IDS = "$topicIds"
"""Key of the topic ids. A re-created topic has the same name but another id.

Offsets alone do not reveal it: the new topic may already have grown past the offset that was read."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a stream."""

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)

    def other_topics(self, later: "Mark") -> set[str]:
        """Returns the topics with another id in `later`. A missing id counts as the same id."""
        return {topic for topic, id_ in self.topic_ids.items() if later.topic_ids.get(topic, id_) != id_}

    def recreated(self, later: "Mark") -> set[TopicPartition]:
        """Returns partitions of re-created topics: the topic id differs, or the end precedes the read offset."""
        others = self.other_topics(later)
        return {
            at
            for at, offset in self.offsets.items()
            if at in later.offsets and (at.topic in others or later.offsets[at] < offset)
        }


def to_json(mark: Mark) -> dict[str, Any]:
    nested: dict[str, Any] = by_topic(mark.offsets)
    if mark.topic_ids:
        nested[TOPIC_IDS] = dict(sorted(mark.topic_ids.items()))
    return nested


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for at in sorted(offsets):
        nested.setdefault(at.topic, {})[str(at.partition)] = offsets[at]
    return nested


def from_json(nested: Mapping[str, Any]) -> Mark:
    """Parses the output of `to_json` from a checkpoint. Raises ValueError."""
    offsets = parse({topic: rows for topic, rows in nested.items() if topic not in (INITIAL, TOPIC_IDS)}, least=0)
    ids = nested.get(TOPIC_IDS, {})
    if not isinstance(ids, Mapping) or not all(isinstance(id_, str) for id_ in ids.values()):
        raise ValueError(f"under {TOPIC_IDS} there must be an object of texts, not {_shown(ids)}")
    return Mark(offsets, dict(ids))


def read(text: str, *, least: int) -> Offsets:
    """Parses JSON of a user. Numbers are at least `least`. Raises ValueError with the position of the error."""
    try:
        nested = json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    return parse(nested, least=least)


def parse(nested: object, *, least: int) -> Offsets:
    if not isinstance(nested, Mapping):
        raise ValueError('it must be a JSON object such as {"orders": {"0": 23, "1": 345}}')
    offsets: Offsets = {}
    for topic, rows in nested.items():
        if not isinstance(rows, Mapping):
            raise ValueError(f'under topic {topic} there must be an object such as {{"0": 23}}, not {_shown(rows)}')
        for partition, number in rows.items():
            at = TopicPartition(str(topic), partition_number(partition))
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= OFFSET_MAX:
                raise ValueError(
                    f"partition {partition} of topic {topic} must have a whole number, not {_shown(number)}"
                )
            offsets[at] = number
    return offsets


def partition_number(text: object) -> int:
    """Raises ValueError, even for non-ASCII digits, which Python accepts."""
    number = str(text)
    if isinstance(text, bool) or not number.isascii() or not number.isdigit() or int(number[:11]) > PARTITION_MAX:
        raise ValueError(f"{_shown(text)} is not the number of a partition")
    return int(number)


def text_of(places: Iterable[TopicPartition], shown_max: int = 10) -> str:
    """Formats partitions for messages: `orders-0, orders-1`."""
    names = [f"{at.topic}-{at.partition}" for at in sorted(places)]
    return ", ".join(names[:shown_max]) + (f" and {len(names) - shown_max} more" if len(names) > shown_max else "")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{_shown(name)} is there twice")
        found[name] = value
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
