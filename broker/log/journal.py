"""Durable state as a log of keys and values: committed offsets, topics, configs.

The newest value of a key counts. A null value removes the key. The state is small and stays in memory. Compaction
writes a snapshot of it to a new segment, flushes it, and deletes the older segments. A crash in between leaves both.
Replaying both gives the same state.

Reading verifies the checksum of each batch. It skips damaged batches and reports them in `damage`. `replace_damaged`
then writes the remaining state to a new segment and keeps copies of the damaged files.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.scan import Scanned, scan
from headgate.broker.log.segment import Segment
from headgate.broker.runtime.clock import Clock
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import WaitingWork
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import read_header
from headgate.wire.records import Record, encode_batch, read_records

logger = logging.getLogger("headgate.broker.log")

Entry = tuple[bytes, bytes | None]

Snapshot: TypeAlias = Callable[[], Iterable[tuple[bytes, bytes]]]
"""Returns entries that reproduce the live state when they are replayed."""

# Compact when the journal exceeds this size and has grown by this factor since the last compaction.
compact_bytes_min = 8 * 1024 * 1024
compact_growth_factor = 4

# Snapshot entries per batch. A batch takes a few milliseconds, and other requests run between batches.
snapshot_batch_entries = 1000


class Journal:
    """A log of keys and values on top of a partition log.

    With `group_commit`, its threads flush the entries of `append`. Without it, `append` flushes at once. With
    `reserve`, `append_now` uses reserved space on a full disk. Both methods raise StorageError.
    """

    def __init__(
        self,
        log: PartitionLog,
        clock: Clock,
        *,
        group_commit: GroupCommit | None = None,
        reserve: DiskReserve | None = None,
    ) -> None:
        self.log = log
        self._group_commit = group_commit
        self._reserve = reserve
        self._clock = clock
        self._compact_at_bytes = compact_bytes_min
        self._snapshot_start: int
        self.damage: list[str] = []
        """One description per damaged range or batch that `entries` skipped, and per loss that recovery found."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries since the last compaction, oldest first. Skips damaged batches."""
        self.damage = [loss.description for loss in self.log.losses]
        for segment in self.log.segments:
            for found in scan(segment.file, 0, segment.size_bytes, segment.base_offset, check=True):
                for record in self._records(segment, found):
                    if record.key is not None and record.offset >= self.log.log_start_offset:
                        yield record.key, record.value

    def _records(self, segment: Segment, found: Scanned) -> list[Record]:
        where = f"{self.log.name}/{segment.path('log').name}, position {found.position}"
        if found.header is None:
            self._report(f"{where}: {found.end - found.position} bytes are damaged; the entries in them are skipped")
            return []
        try:
            return list(read_records(segment.file.read(found.position, found.header.size_bytes)))
        except InvalidBatch as error:
            self._report(f"{where}, offset {found.header.base_offset}: the batch is skipped: {error}")
            return []

    def _report(self, damage: str) -> None:
        logger.error("%s", damage)
        self.damage.append(damage)

    def replace_damaged(self, snapshot: Snapshot) -> None:
        """Keep copies of the damaged files and write the remaining state to a new segment.

        Call this after reading `entries`. If it fails, the next start finds the damage again.
        """
        try:
            for segment in self.log.segments:
                copy = segment.path("log.damaged")
                if segment.size_bytes and not copy.exists():
                    os.link(segment.path("log"), copy)
                    logger.error("%s: the damaged journal is kept as %s", self.log.name, copy.name)
            self.compact(snapshot)
        except (StorageError, OSError) as error:
            logger.error("%s: the damaged journal stays in use: %s", self.log.name, error)

    def append(self, entries: Sequence[Entry]) -> Deferred[StorageError | None]:
        """Write entries as one atomic batch: after a crash, all or none exist. Completes when they are durable."""
        if self._group_commit is None:
            self.append_now(entries)
            return Deferred.of(None)
        self._write(entries)
        return self._group_commit.flush(self.log)

    def append_now(self, entries: Sequence[Entry]) -> None:
        """Write entries as one atomic batch and fsync it before returning. For rare changes. Raises StorageError."""
        reserve, end_before = self._reserve, self.log.log_end_offset
        size_bytes = self._write(entries) if reserve is None else reserve.use(lambda: self._write(entries))
        try:
            self._sync()
        except StorageError as error:
            self.log.fail(error)
            self._take_back(end_before, size_bytes)
            raise

    def _take_back(self, end_before: int, size_bytes: int) -> None:
        """Truncate entries whose fsync failed, so that a restart does not replay a rejected change.

        An unrecoverable error has already stopped the journal. After a recoverable error, such as a missing file
        descriptor, later entries take the same position. A power cut may still bring the rejected entries back.
        """
        try:
            self.log.take_back(end_before, self.log.segments[-1].size_bytes - size_bytes)
        except StorageError as error:
            logger.error("%s: %s; a change that was answered with an error may exist", self.log.name, error)

    def _write(self, entries: Sequence[Entry]) -> int:
        now_ms = self._clock.wall_ms()
        batch = encode_batch(entries, now_ms)
        self.log.append(batch, read_header(batch), now_ms, awaits_flush=True)
        return len(batch)

    def _sync(self) -> None:
        for file in self.log.unflushed_files():
            file.sync()
        self.log.note_flushed(self.log.log_end_offset)

    def is_compaction_due(self) -> bool:
        return self.log.size_bytes > self._compact_at_bytes

    def compact(self, snapshot: Snapshot) -> None:
        """Write the live state to a new segment and delete everything before it. Raises StorageError."""
        for _ in self._write_snapshot(snapshot):
            pass
        self._sync()
        self._drop_history()

    def compacting(self, snapshot: Snapshot) -> WaitingWork[None]:
        """Like `compact`, in steps. Other entries may be appended between two steps.

        The snapshot reads each value when it is written, and includes entries that are not durable yet. Therefore an
        entry in the log after the snapshot's value is at least as new as this value.
        """
        yield from self._write_snapshot(snapshot)
        if self._group_commit is None:
            self._sync()
        else:
            end, flushed = self.log.log_end_offset, Deferred[None]()
            self._group_commit.flush(self.log).then(lambda _: flushed.complete(None))
            yield flushed
            if self.log.flushed_offset < end:
                return
        self._drop_history()

    def _write_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        """Yields after each batch. At this point, every value that was read is written."""
        # If a step fails, the next attempt waits until the journal has grown: each attempt leaves a part of a snapshot.
        self._compact_at_bytes = compact_growth_factor * self.log.size_bytes
        now_ms = self._clock.wall_ms()
        self._snapshot_start = self.log.roll(now_ms).base_offset
        pending: list[Entry] = []
        for entry in snapshot():
            pending.append(entry)
            if len(pending) == snapshot_batch_entries:
                self._write_batch(pending, now_ms)
                pending = []
                yield
        if pending:
            self._write_batch(pending, now_ms)

    def _drop_history(self) -> None:
        self.log.delete_records(self._snapshot_start)
        self._compact_at_bytes = max(compact_bytes_min, compact_growth_factor * self.log.size_bytes)

    def _write_batch(self, entries: list[Entry], now_ms: int) -> None:
        batch = encode_batch(entries, now_ms)
        self.log.append(batch, read_header(batch), now_ms)
