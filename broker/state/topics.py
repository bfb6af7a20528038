"""The topics of the broker and their partitions, by name and by id. Opens no file: `broker.node.topic_store` does."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping

from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.protocol.templates import NumbersTemplate
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topic_names import INTERNAL_TOPICS


class Partition:
    """A partition: its log, the Fetch requests that wait for records, and cached response templates."""

    __slots__ = ("index", "log", "templates", "topic", "waiters")

    def __init__(self, topic: "Topic", index: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        log.on_visible = self.notify
        self.waiters: dict[object, Callable[[int], None]] = {}
        """Fetch requests that wait for records. Each is called with the number of new bytes."""
        self.templates: dict[tuple[int, ...], NumbersTemplate] = {}
        """Encoded responses about this partition per API, version and isolation level."""

    @property
    def leader_epoch(self) -> int:
        return self.log.leader_epoch

    def notify(self, arrived_bytes: int) -> None:
        for callback in list(self.waiters.values()):
            callback(arrived_bytes)


class Topic:
    __slots__ = ("name", "overrides", "partitions", "settings", "templates", "topic_id")

    def __init__(self, name: str, topic_id: uuid.UUID, overrides: Mapping[str, str], settings: TopicSettings) -> None:
        self.name = name
        self.topic_id = topic_id
        self.overrides = dict(overrides)
        self.settings = settings
        self.partitions: list[Partition] = []
        self.templates: dict[tuple[int, int], bytes] = {}
        """The encoded start of the topic in responses (its name or id), per API and version."""

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def apply(self, settings: TopicSettings) -> None:
        self.settings = settings
        for partition in self.partitions:
            partition.log.settings = settings


class Topics:
    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._being_opened: dict[uuid.UUID, tuple[Topic, int]] = {}
        """Topics that are in the metadata journal with more partitions than are open, and the number in the journal."""
        self.partition_count = 0
        """Partitions that are open, including those of topics that are being created."""

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def find_by_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return self._by_id.get(topic_id) if topic_id is not None else None

    def all(self) -> Iterable[Topic]:
        return self._by_name.values()

    def logs(self) -> Iterator[PartitionLog]:
        for topic in self._by_name.values():
            for partition in topic.partitions:
                yield partition.log

    def end_offset(self, name: str, index: int) -> int | None:
        """The log end offset of a partition. None if the partition does not exist."""
        topic = self._by_name.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index].log.log_end_offset

    def add(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic

    def add_partition(self, topic: Topic, log: PartitionLog) -> None:
        topic.partitions.append(Partition(topic, len(topic.partitions), log))
        self.partition_count += 1

    def remove(self, topic: Topic) -> None:
        self.partition_count -= len(topic.partitions)
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self._being_opened.pop(topic.topic_id, None)

    def start_opening(self, topic: Topic, total: int) -> None:
        """The metadata journal contains `total` partitions of the topic. Not all of them are open yet."""
        self._being_opened[topic.topic_id] = (topic, total)

    def finish_opening(self, topic: Topic) -> None:
        self._being_opened.pop(topic.topic_id, None)

    def partitions_in_journal(self, topic: Topic) -> int:
        return self._being_opened.get(topic.topic_id, (topic, len(topic.partitions)))[1]

    def all_in_journal(self) -> Iterator[Topic]:
        """Every topic that the metadata journal contains, including those that are being created."""
        yield from (topic for topic in self._by_name.values() if topic.topic_id not in self._being_opened)
        yield from (topic for topic, _ in self._being_opened.values())

    def apply(self, settings: BrokerSettings) -> None:
        """Compute the settings of each topic again, after the broker's configs changed."""
        for topic in self._by_name.values():
            topic.apply(settings.topic_settings(topic.overrides))
