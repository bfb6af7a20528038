"""Offsets of topic partitions, as Spark keeps them in a checkpoint: `{"orders": {"0": 23, "1": 345}}`.

The form is that of Spark's own Kafka source: the offset of a partition is that of the next record to read. What a
stream remembers besides stands under names that no topic can have. Spark compares offsets as texts, so the order is
always the same. Pure functions; who asks the brokers is `spark_udfs.source.cluster`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.structs import TopicPartition

Offsets = dict[TopicPartition, int]
TopicIds = dict[str, str]
"""By topic name. Brokers before Kafka 2.8 have no topic ids."""

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
INITIAL = "$initial"
"""Beside the topics in the offset of a query's first batch: where that batch begins. Spark keeps only where a batch
ends, and asks anew for the beginning if the first one has to be repeated, which "latest" would then answer with another
place."""
TOPIC_IDS = "$topicIds"
"""Beside the topics: the id of each. A topic that is deleted and made anew has another one under the same name, and
may have grown past the offset that was read of its predecessor."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a stream."""

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)

    def other_topics(self, later: "Mark") -> set[str]:
        """Topics with another id in `later`. A missing id counts as the same id."""
        return {topic for topic, id_ in self.topic_ids.items() if later.topic_ids.get(topic, id_) != id_}

    def made_anew(self, later: "Mark") -> set[TopicPartition]:
        """Partitions of re-created topics: the topic id differs, or the end is before the offset that was read."""
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
    """Parse the output of `to_json` from a checkpoint. Raises ValueError."""
    offsets = parse({topic: rows for topic, rows in nested.items() if topic not in (INITIAL, TOPIC_IDS)}, least=0)
    ids = nested.get(TOPIC_IDS, {})
    if not isinstance(ids, Mapping) or not all(isinstance(id_, str) for id_ in ids.values()):
        raise ValueError(f"under {TOPIC_IDS} there must be an object of texts, not {_shown(ids)}")
    return Mark(offsets, dict(ids))


def read(text: str, *, least: int) -> Offsets:
    """Parse JSON of a user. Numbers are at least `least`. Raises ValueError with the position of the error."""
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
    """Raises ValueError, also for digits of other scripts, which Python accepts."""
    number = str(text)
    if isinstance(text, bool) or not number.isascii() or not number.isdigit() or int(number[:11]) > PARTITION_MAX:
        raise ValueError(f"{_shown(text)} is not the number of a partition")
    return int(number)


def text_of(places: Iterable[TopicPartition], shown_max: int = 10) -> str:
    """`orders-0, orders-1`, for messages."""
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
