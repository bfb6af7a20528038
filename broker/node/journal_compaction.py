"""Compacts the metadata journal and `__consumer_offsets` periodically."""

from headgate.broker.node.metadata_journal import MetadataJournal
from headgate.broker.node.offsets_topic import OffsetsTopic
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.groups.coordinator import GroupCoordinator

# How often the broker checks whether compaction is due.
compaction_check_interval_ms = 5_000


class JournalCompaction:
    def __init__(
        self, metadata: MetadataJournal, offsets: OffsetsTopic, groups: GroupCoordinator, timers: Timers
    ) -> None:
        self._metadata = metadata
        self._offsets = offsets
        self._groups = groups
        self._timers = timers

    def start(self) -> None:
        self._timers.after(compaction_check_interval_ms, self.run)

    def run(self) -> None:
        self.start()
        try:
            self._metadata.compact_if_due()
        except StorageError as error:
            self._metadata.log.fail(error)
        journal = self._offsets.journal
        if journal is not None:
            try:
                journal.compact_if_due(self._groups.snapshot)
            except StorageError as error:
                journal.log.fail(error)
