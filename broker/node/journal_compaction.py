"""Compacts the metadata journal and `__consumer_offsets` periodically."""

from typing import Any

from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.journal import Journal
from headgate.broker.node.metadata_journal import MetadataJournal
from headgate.broker.node.offsets_topic import OffsetsTopic
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices, WaitingWork
from headgate.broker.state.groups.coordinator import GroupCoordinator

# How often the broker checks whether compaction is due.
compaction_check_interval_ms = 5_000


class JournalCompaction:
    def __init__(
        self,
        metadata: MetadataJournal,
        offsets: OffsetsTopic,
        groups: GroupCoordinator,
        reserve: DiskReserve,
        slices: TimeSlices[Any],
        timers: Timers,
    ) -> None:
        self._metadata = metadata
        self._offsets = offsets
        self._groups = groups
        self._reserve = reserve
        self._slices = slices
        self._timers = timers
        self._is_running = False

    def start(self) -> None:
        self._timers.after(compaction_check_interval_ms, self.run)

    def run(self) -> None:
        self.start()
        # On a full disk, a snapshot would use the space that deletions need.
        if not self._reserve.has_space():
            return
        try:
            self._metadata.compact_if_due()
        except StorageError as error:
            self._metadata.log.fail(error)
        journal = self._offsets.journal
        if journal is not None and journal.is_compaction_due() and not self._is_running:
            self._is_running = True
            self._slices.run(self._compact(journal))

    def _compact(self, journal: Journal) -> WaitingWork[None]:
        try:
            yield from journal.compacting(self._groups.snapshot)
        except StorageError as error:
            journal.log.fail(error)
        finally:
            self._is_running = False
