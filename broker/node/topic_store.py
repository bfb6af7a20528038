"""Creates, changes and deletes topics: their directories, their logs and their entries in the metadata journal.

A change is durable before it is visible.
"""

import uuid
from collections.abc import Generator, Mapping
from typing import TypeVar

from headgate.broker.log.directory import DataDirectory
from headgate.broker.node.metadata_journal import MetadataJournal
from headgate.broker.node.partition_opening import PartitionOpening
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topics import Topic, Topics

T = TypeVar("T")

# Partitions created or opened per step. A step takes a few milliseconds, and other requests run between steps.
partitions_per_step = 16


class TopicStore:
    def __init__(
        self,
        topics: Topics,
        directory: DataDirectory,
        metadata: MetadataJournal,
        opening: PartitionOpening,
        settings: BrokerSettings,
    ) -> None:
        self._topics = topics
        self._directory = directory
        self._metadata = metadata
        self._opening = opening
        self._settings = settings

    def create(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Topic:
        """Create a topic in one step. The caller checks name and count. Raises StorageError, InvalidConfig."""
        return finish(self.creating(name, partition_count, overrides))

    def creating(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Generator[None, None, Topic]:
        """Create a topic in steps. It is visible after the last step. Raises the errors of `create`."""
        topic = Topic(name, uuid.uuid4(), overrides, self._settings.topic_settings(overrides))
        yield from self.adding_partitions(topic, partition_count)
        self._topics.add(topic)
        return topic

    def adding_partitions(self, topic: Topic, total: int) -> Generator[None, None, None]:
        """Add partitions to a topic in steps. Raises StorageError.

        Creates the directories first, then the journal entry. An error removes the new directories, so that the next
        start does not recover them.
        """
        new = range(len(topic.partitions), total)
        try:
            for start in range(new.start, new.stop, partitions_per_step):
                self._directory.create_partitions(
                    topic.name, topic.topic_id, range(start, min(start + partitions_per_step, total))
                )
                yield
            self._metadata.save_topic(topic, total)
        except StorageError:
            for index in new:
                self._directory.set_aside(self._directory.partition_path(topic.name, index))
            raise
        self._topics.start_opening(topic, total)
        for start in range(new.start, new.stop, partitions_per_step):
            yield
            self._opening.open_new(topic, min(start + partitions_per_step, total))
        self._topics.finish_opening(topic)

    def set_overrides(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Replace the topic's configs. Raises StorageError, InvalidConfig."""
        settings = self._settings.topic_settings(overrides)
        before, topic.overrides = topic.overrides, dict(overrides)
        try:
            self._metadata.save_topic(topic, self._topics.partitions_in_journal(topic))
        except Exception:
            topic.overrides = before
            raise
        topic.apply(settings)

    def delete(self, topic: Topic) -> None:
        """Delete a topic durably and rename its directories. `broker.node.file_removal` removes the files later."""
        self._metadata.delete_topic(topic)
        self._topics.remove(topic)
        for partition in topic.partitions:
            partition.log.discard()
            self._directory.set_aside(partition.log.directory)
            partition.notify(0)


def finish(steps: Generator[None, None, T]) -> T:
    """Run all steps without yielding, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
