"""The partitions to read: topics by name or pattern, or single partitions. No I/O."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from headgate.spark_udfs.source.errors import BadOption, TopicMissing
from headgate.spark_udfs.source.offsets import partition_number, text_of

TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
"""Kafka's rule for topic names."""

NAMES = ("subscribe", "subscribePattern", "assign")
PATTERN = "topicPattern"
"""Another name of `subscribePattern`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Exactly one field is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The topics of the metadata request, or None for all topics."""
        if self.pattern is not None:
            return None
        return self.topics or tuple(sorted({at.topic for at in self.assigned}))

    @property
    def option(self) -> str:
        """The name of the option."""
        if self.pattern is not None:
            return "subscribePattern"
        return "subscribe" if self.topics else "assign"

    def includes(self, at: TopicPartition) -> bool:
        """Returns whether the partition is selected, even if it does not exist."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, at.topic) is not None
        return at.topic in self.topics or at in self.assigned

    def chosen(self, known: Mapping[str, Iterable[int]], *, may_miss: bool = False) -> list[TopicPartition]:
        """Returns the selected partitions of the cluster. A pattern may match no topic.

        Raises `TopicMissing` for a missing topic or partition, unless `may_miss`.
        """
        if self.pattern is not None:
            pattern = re.compile(self.pattern)
            names: Iterable[str] = [topic for topic in known if pattern.fullmatch(topic)]
        else:
            names = self.names or ()
        missing = [topic for topic in names if topic not in known]
        if may_miss:
            names = [topic for topic in names if topic in known]
        elif missing:
            raise TopicMissing(
                f"Topic {', '.join(missing)} is not in the cluster. Check the name, the address in bootstrap.servers, "
                "and whether the user may describe it; reading does not create topics."
            )
        found = {TopicPartition(topic, partition) for topic in names for partition in known[topic]}
        if self.assigned:
            absent = set(self.assigned) - found
            if absent and not may_miss:
                raise TopicMissing(f"Partition {text_of(absent)} named in assign is not in the cluster.")
            return sorted(found & set(self.assigned))
        return sorted(found)


def read_selection(options: Mapping[str, str]) -> Selection:
    """Parses options with lower-case names."""
    options = {("subscribepattern" if name == PATTERN.lower() else name): text for name, text in options.items()}
    given = [name for name in NAMES if name.lower() in options]
    if len(given) != 1:
        problem = "which topics to read? Give one of subscribe, subscribePattern and assign"
        if given:
            problem = f"it excludes {' and '.join(given[1:])}; give one of the three"
        raise BadOption(given[0] if given else "subscribe", problem)
    name = given[0]
    text = options[name.lower()]
    if name == "subscribe":
        return Selection(topics=_topics(text))
    if name == "assign":
        return Selection(assigned=_assigned(text))
    pattern = text.strip()
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadOption(name, f"it is not a regular expression: {error}") from None
    if not pattern:
        raise BadOption(name, "it is empty")
    return Selection(pattern=pattern)


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
    if not topics:
        raise BadOption("subscribe", "it names no topic")
    for topic in topics:
        check_topic("subscribe", topic)
    return topics


def check_topic(option: str, topic: str) -> None:
    if not TOPIC_NAME.match(topic):
        rule = "up to 249 letters, digits, dots, dashes and underscores"
        raise BadOption(option, f"{topic[:60]!r} cannot be a topic's name ({rule})")


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    problem = f'it must be JSON such as {{"orders": [0, 1]}}, not {text[:60]!r}'
    try:
        nested = json.loads(text)
    except (ValueError, RecursionError):
        raise BadOption("assign", problem) from None
    if not isinstance(nested, dict) or not nested:
        raise BadOption("assign", problem)
    places: set[TopicPartition] = set()
    for topic, partitions in nested.items():
        check_topic("assign", topic)
        if not isinstance(partitions, list) or not partitions:
            raise BadOption("assign", f"topic {topic} needs a list of partitions such as [0, 1]")
        try:
            places |= {TopicPartition(topic, partition_number(one)) for one in partitions}
        except ValueError as error:
            raise BadOption("assign", f"topic {topic}: {error}") from None
    return tuple(sorted(places))
