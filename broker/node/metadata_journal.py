"""The metadata journal `__cluster_metadata`: topics, dynamic broker configs and the end of the last producer id block.

Each change is durable when the method returns. The methods raise StorageError.
"""

from collections.abc import Iterator, Mapping

from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.journal import Journal
from headgate.broker.log.producer_id_block import write_block_end
from headgate.broker.state.metadata_image import broker_entry, producer_ids_entry, topic_entry, topic_key
from headgate.broker.state.settings import BrokerSettings, Scope
from headgate.broker.state.topics import Topic, Topics


class MetadataJournal:
    def __init__(
        self,
        journal: Journal,
        directory: DataDirectory,
        topics: Topics,
        settings: BrokerSettings,
        producer_ids_end: int,
    ) -> None:
        self.log = journal.log
        self.producer_ids_end = producer_ids_end
        """The first producer id that is not allocated."""
        self._journal = journal
        self._directory = directory
        self._topics = topics
        self._settings = settings

    def save_topic(self, topic: Topic, partition_count: int) -> None:
        self._journal.append_now([topic_entry(topic.name, topic.topic_id, partition_count, topic.overrides)])

    def delete_topic(self, topic: Topic) -> None:
        self._journal.append_now([(topic_key(topic.name, topic.topic_id), None)])

    def save_broker_overrides(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        self._journal.append_now([broker_entry(scope, overrides)])

    def allocate_producer_ids(self, count: int) -> range:
        """Allocate a block of producer ids. Its end is stored in two places."""
        block = range(self.producer_ids_end, self.producer_ids_end + count)
        write_block_end(self._directory.path, block.stop)
        self._journal.append_now([producer_ids_entry(block.stop)])
        self.producer_ids_end = block.stop
        return block

    def compact_if_due(self) -> None:
        if self._journal.is_compaction_due():
            self._journal.compact(self._snapshot)

    def replace_damaged(self) -> None:
        self._journal.replace_damaged(self._snapshot)

    def _snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        topics = self._topics
        for topic in topics.all_in_journal():
            yield topic_entry(topic.name, topic.topic_id, topics.partitions_in_journal(topic), topic.overrides)
        for scope in Scope:
            yield broker_entry(scope, self._settings.dynamic(scope))
        if self.producer_ids_end:
            yield producer_ids_entry(self.producer_ids_end)
