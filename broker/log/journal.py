"""State that must survive, kept as a log of keys and values: what groups committed, which topics exist.

The newest value of a key counts, a null value removes it. The state itself is small and in memory, so compaction is a
snapshot: everything that is live is written to a new segment and flushed, then the older ones go. A crash in between
leaves both, and reading both gives the same state.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kio.schema.errors import ErrorCode

from broker.clock import Clock
from broker.deferred import Deferred
from broker.errors import StorageError
from broker.log.group_commit import GroupCommit
from broker.log.partition_log import PartitionLog
from broker.protocol.record_batch import encode_batch, read_header, records

Entry = tuple[bytes, bytes | None]

# Compaction pays when what is dead outweighs what is live; below this size nobody notices either.
compact_bytes_min = 8 * 1024 * 1024
compact_growth_factor = 4

# Entries of a snapshot written as one batch.
snapshot_batch_entries = 1000


class Journal:
    def __init__(self, log: PartitionLog, clock: Clock, snapshot: Callable[[], Iterable[tuple[bytes, bytes]]]) -> None:
        self.log = log
        self.group_commit: GroupCommit | None = None
        """Set once the threads run; until then every append is flushed at once."""
        self._clock = clock
        self._snapshot = snapshot
        self._compact_at_bytes = compact_bytes_min

    def entries(self) -> Iterator[Entry]:
        """All that was ever appended and not compacted away, oldest first."""
        for segment, position, header in self.log.batches_from(self.log.log_start_offset):
            for record in records(segment.file.read(position, header.size_bytes)):
                if record.key is not None:
                    yield record.key, record.value

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        """Write entries together: after a crash all of them are there, or none. Completes when they are durable."""
        deferred: Deferred[ErrorCode] = Deferred()
        try:
            if self.group_commit is None:
                self.append_now(entries)
                deferred.complete(ErrorCode.none)
            else:
                self._write(entries)
                self.group_commit.flush(self.log).then(
                    lambda error: deferred.complete(ErrorCode.none if error is None else ErrorCode.kafka_storage_error)
                )
        except StorageError:
            deferred.complete(ErrorCode.kafka_storage_error)
        return deferred

    def append_now(self, entries: Sequence[Entry]) -> None:
        """The same, on the disk when it returns; for rare changes. Raises StorageError."""
        self._write(entries)
        try:
            self._sync()
        except StorageError as error:
            self.log.fail(error)
            raise

    def _write(self, entries: Sequence[Entry]) -> None:
        now_ms = self._clock.wall_ms()
        batch = encode_batch(entries, now_ms)
        self.log.append(batch, read_header(batch), now_ms)

    def _sync(self) -> None:
        for file in self.log.unflushed_files():
            file.sync()
        self.log.flushed_offset = self.log.log_end_offset

    def compact_if_due(self) -> None:
        """Called now and then. Waits for a moment when every append is durable, hence part of the state."""
        if self.log.size_bytes > self._compact_at_bytes and self.log.flushed_offset == self.log.log_end_offset:
            self.compact()

    def compact(self) -> None:
        """Write the live state to a segment of its own and drop everything before it."""
        now_ms = self._clock.wall_ms()
        first = self.log.roll(now_ms).base_offset
        pending: list[Entry] = []
        for entry in self._snapshot():
            pending.append(entry)
            if len(pending) == snapshot_batch_entries:
                self._write_batch(pending, now_ms)
                pending = []
        if pending:
            self._write_batch(pending, now_ms)
        self._sync()
        self.log.delete_records(first)
        self._compact_at_bytes = max(compact_bytes_min, compact_growth_factor * self.log.size_bytes)

    def _write_batch(self, entries: list[Entry], now_ms: int) -> None:
        batch = encode_batch(entries, now_ms)
        self.log.append(batch, read_header(batch), now_ms)
