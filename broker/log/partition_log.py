"""The log of one partition: a row of segments, appended at the end, read anywhere, trimmed at the front.

Batches are opaque: the base offset and the leader epoch are patched into the first sixteen bytes and the rest goes to
the page cache as it came. Durability (`flush_target`, `flushed`) is decided by `broker.log.group_commit`, the state
after a crash by `broker.log.recovery`.
"""

import logging
import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from crc32c import crc32c

from broker.errors import StorageError
from broker.log.files import LogFile, remove_file, replace_file
from broker.log.index import OFFSET_ENTRY_BYTES
from broker.log.scan import scan
from broker.log.segment import Region, Segment
from broker.log.snapshots import write_snapshot
from broker.log.time_search import batch_as_a_whole, first_at, misleading_batches_max
from broker.protocol.record_batch import (
    CHECKSUMMED_FROM,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    CorruptBatch,
    read_header,
)
from broker.state.configs.effective import TopicSettings
from broker.state.producers import ProducerStates

_HEAD = struct.Struct(">qii")
_HEAD_BYTES = 16

# Index entries hold offsets and positions as 32-bit numbers relative to their segment.
relative_offset_max = 2**31 - 1

# Sealed segments of one log that stay open after a read; a consumer reads them one after the other.
open_sealed_segments_max = 2

logger = logging.getLogger("headgate.broker.log")


class OffsetOutOfRange(Exception):
    """The offset asked for is not in the log, nor its end."""


class PartitionLog:
    def __init__(self, directory: Path, settings: TopicSettings) -> None:
        self.directory = directory
        self.name = directory.name
        self.settings = settings
        self.segments: list[Segment] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.flushed_offset = 0
        """Everything before it is on the disk."""
        self.unflushed_since_ms = 0
        """When it was last seen with nothing left to flush, on the monotonic clock."""
        self.producers = ProducerStates()
        self.leader_epoch = 0
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, first offset written in it), ascending."""
        self.failure: StorageError | None = None
        """Set when the disk failed in a way that only a restart can judge."""
        self.is_deleted = False
        """Its topic is gone, and the name of its directory may belong to another: nothing more is written there."""
        self._base_offsets: list[int] = []
        self._open_sealed: list[Segment] = []
        self._tail_offset = -1
        self._tail_position = 0

    @property
    def high_watermark(self) -> int:
        """One node, no followers: what is written is committed."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """No open transactions can exist yet, so every record is decided."""
        return self.log_end_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.messages asks for an fsync before anything more is acknowledged."""
        return self.log_end_offset - self.flushed_offset >= self.settings.flush_messages

    def adopt(self, segments: list[Segment]) -> None:
        """Take over segments that recovery found sound."""
        self.segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self._tail_offset = -1

    def append(self, batch: bytes | memoryview, header: BatchHeader, now_ms: int) -> int:
        """Write a validated batch to the page cache; its base offset."""
        if self.failure is not None:
            raise self.failure
        settings = self.settings
        offset = self.log_end_offset
        if settings.uses_log_append_time:
            batch, header = _stamped(batch, header.attributes | LOG_APPEND_TIME_FLAG, now_ms)
        elif header.attributes & LOG_APPEND_TIME_FLAG:
            # The time is the client's, whatever it says.
            batch, header = _stamped(batch, header.attributes & ~LOG_APPEND_TIME_FLAG, header.max_timestamp)
        segment = self.segments[-1]
        size = header.batch_length + 12
        if self._must_roll(segment, size, header, offset, now_ms):
            segment = self.roll(now_ms)
        try:
            segment.append(
                _HEAD.pack(offset, header.batch_length, self.leader_epoch),
                memoryview(batch)[_HEAD_BYTES:],
                header,
                offset,
                settings.index_interval_bytes,
            )
        except StorageError as error:
            self.fail(error)
            raise
        if not self.epochs or self.epochs[-1][0] < self.leader_epoch:
            self.epochs.append((self.leader_epoch, offset))
        if header.producer_id >= 0:
            self.producers.record(header, offset, now_ms)
        self._tail_offset = offset
        self._tail_position = segment.size_bytes - size
        self.log_end_offset = offset + header.last_offset_delta + 1
        return offset

    def fail(self, error: StorageError) -> None:
        if error.recoverable:
            logger.error("%s: %s; writes are refused until there is room", self.name, error)
        elif self.failure is None:
            self.failure = error
            logger.critical("%s: %s; the partition is stopped until the broker restarts", self.name, error)

    def _must_roll(self, segment: Segment, size: int, header: BatchHeader, offset: int, now_ms: int) -> bool:
        if segment.size_bytes == 0:
            return False
        settings = self.settings
        if segment.size_bytes + size > settings.segment_bytes:
            return True
        if offset + header.last_offset_delta - segment.base_offset > relative_offset_max:
            return True
        if segment.index_bytes + OFFSET_ENTRY_BYTES > settings.segment_index_bytes:
            return True
        first = segment.first_timestamp
        if first is not None and first >= 0 and header.max_timestamp >= 0:
            return header.max_timestamp - first > settings.segment_ms
        return now_ms - segment.created_ms > settings.segment_ms

    def roll(self, now_ms: int) -> Segment:
        """Seal the last segment and begin another at the log's end. The sealed one is flushed by the group commit."""
        sealed = self.segments[-1]
        if sealed.size_bytes == 0 and sealed.base_offset == self.log_end_offset:
            # Begun before, and the write that was to come failed: another would have the same file.
            return sealed
        try:
            sealed.write_indexes()
            write_snapshot(self.directory, self.log_end_offset, self.producers)
            segment = Segment(self.directory, self.log_end_offset, now_ms)
        except StorageError as error:
            self.fail(error)
            raise
        self.segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._tail_offset = -1
        return segment

    def unflushed_files(self) -> list[LogFile]:
        """What an fsync of the whole log must cover: the segments that hold offsets not yet on the disk."""
        first = bisect_right(self._base_offsets, self.flushed_offset) - 1
        return [segment.file for segment in self.segments[max(first, 0) :] if segment.size_bytes]

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Region | None:
        """The batches from the one that holds `offset` on, as many as `max_bytes` takes; None at the end.

        With `at_least_one`, the first batch is whole however large. Raises OffsetOutOfRange, CorruptBatch.
        """
        if offset == self.log_end_offset:
            return None
        if not self.log_start_offset <= offset < self.log_end_offset:
            raise OffsetOutOfRange(offset)
        if offset == self._tail_offset:
            # A consumer at the tail asks for the batch that was just written.
            segment, position = self.segments[-1], self._tail_position
            length = segment.size_bytes - position
            if length > max_bytes and not at_least_one:
                length = 0
            return segment.region(position, length, offset)
        number = bisect_right(self._base_offsets, offset) - 1
        while number < len(self.segments):
            segment = self._opened(number)
            try:
                position, header = segment.locate(offset)
            except LookupError:
                number += 1
                continue
            first = header.batch_length + 12
            if max_bytes < first and not at_least_one:
                return Region(segment.file, position, 0)
            length = segment.whole_batches(position, max(max_bytes, first), first)
            return segment.region(position, length, header.base_offset)
        raise CorruptBatch(f"{self.name}: no batch holds offset {offset}")

    def has_more(self, region: Region) -> bool:
        """Whether anything lies behind what `read` gave."""
        last = self.segments[-1]
        return region.file is not last.file or region.position + region.length < last.size_bytes

    def _opened(self, number: int) -> Segment:
        """A segment to read from; the sealed ones opened longest ago are let go."""
        segment = self.segments[number]
        if number < len(self.segments) - 1 and segment not in self._open_sealed:
            self._open_sealed.append(segment)
            if len(self._open_sealed) > open_sealed_segments_max:
                oldest = self._open_sealed.pop(0)
                if oldest is not self.segments[-1]:
                    oldest.forget()
        return segment

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """Headers of the sound batches that end at `offset` or later, for cold paths."""
        for number in range(max(bisect_right(self._base_offsets, offset) - 1, 0), len(self.segments)):
            segment = self._opened(number)
            relative, start = segment.index.floor(max(offset - segment.base_offset, 0))
            for found in scan(segment.file, start, segment.size_bytes, segment.base_offset + relative, check=False):
                if found.header is not None and found.header.last_offset >= offset:
                    yield segment, found.position, found.header

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record at `timestamp` or later."""
        for number, segment in enumerate(self.segments):
            if number < len(self.segments) - 1:
                segment.load_times()
            if segment.largest_timestamp < timestamp:
                continue
            start = max(segment.base_offset + segment.time_index.before(timestamp), self.log_start_offset)
            misleading = 0
            for holder, position, header in self.batches_from(start):
                if header.max_timestamp < timestamp:
                    continue
                if misleading == misleading_batches_max:
                    return batch_as_a_whole(header, self.log_start_offset)
                batch = holder.file.read(position, header.size_bytes)
                found = first_at(batch, header, timestamp, self.log_start_offset)
                if found is not None:
                    return found
                misleading += 1
            return None
        return None

    def offset_of_largest_timestamp(self) -> tuple[int, int] | None:
        """(offset, timestamp) of the record with the largest timestamp."""
        best: Segment | None = None
        for number, segment in enumerate(self.segments):
            if number < len(self.segments) - 1:
                segment.load_times()
            if segment.size_bytes and (best is None or segment.largest_timestamp > best.largest_timestamp):
                best = segment
        if best is None or best.largest_timestamp < 0:
            return None
        for holder, position, header in self.batches_from(best.largest_timestamp_offset):
            batch = holder.file.read(position, header.size_bytes)
            found = first_at(batch, header, best.largest_timestamp, self.log_start_offset)
            return found if found is not None else batch_as_a_whole(header, self.log_start_offset)
        return None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch at or before `epoch`, first offset after it); (-1, -1) when none is known.

        Of an epoch from before all that the log still holds, it is that epoch and the first offset that there is.
        """
        if epoch == -1 or epoch > self.leader_epoch:
            return -1, -1
        entries = list(self.epochs)
        if not entries or entries[-1][0] < self.leader_epoch:
            entries.append((self.leader_epoch, self.log_end_offset))
        # What deleted records took with them: of the epochs that begin at the log's start or before, the last is left.
        gone = sum(start <= self.log_start_offset for _, start in entries)
        entries = entries[max(gone - 1, 0) :]
        position = bisect_right(entries, epoch, key=lambda entry: entry[0])
        found = entries[position - 1][0] if position else epoch
        end = entries[position][1] if position < len(entries) else self.log_end_offset
        return found, max(end, self.log_start_offset)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which `offset` was written; the current one at the end of the log."""
        if offset >= self.log_end_offset:
            return self.leader_epoch
        found = -1
        for epoch, start in self.epochs:
            if start > offset:
                break
            found = epoch
        return found

    def delete_records(self, offset: int) -> int:
        """Make `offset` the first one, durably; the new log start offset. Raises OffsetOutOfRange."""
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(offset)
        if offset > self.log_start_offset:
            replace_file(self.directory / "log-start-offset", str(offset).encode())
            self.log_start_offset = offset
            self.drop_segments_before_start()
        return self.log_start_offset

    def drop_segments_before_start(self) -> list[Segment]:
        """Remove sealed segments that lie wholly before the log start offset."""
        dropped = []
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.log_start_offset:
            dropped.append(self._drop_first())
        return dropped

    def _drop_first(self) -> Segment:
        segment = self.segments.pop(0)
        self._base_offsets.pop(0)
        if segment in self._open_sealed:
            self._open_sealed.remove(segment)
        segment.remove()
        return segment

    def apply_retention(self, now_ms: int) -> int:
        """Remove segments that are too old or too many; how many went."""
        settings, removed = self.settings, 0
        if not settings.deletes_old_segments:
            return 0
        total = self.size_bytes
        while self.segments:
            oldest = self.segments[0]
            if oldest.size_bytes == 0:
                break
            if len(self.segments) > 1:
                oldest.load_times()
            timestamp = oldest.largest_timestamp if oldest.largest_timestamp >= 0 else oldest.created_ms
            expired = settings.retention_ms >= 0 and now_ms - timestamp > settings.retention_ms
            surplus = settings.retention_bytes >= 0 and total - oldest.size_bytes >= settings.retention_bytes
            if not expired and not surplus:
                break
            if len(self.segments) == 1:
                self.roll(now_ms)
            total -= oldest.size_bytes
            start = max(self.log_start_offset, self.segments[1].base_offset)
            # The new start first: a crash between the two leaves a segment to remove, never a hole.
            replace_file(self.directory / "log-start-offset", str(start).encode())
            self.log_start_offset = start
            self._drop_first()
            removed += 1
        return removed

    def checkpoint(self) -> None:
        """Write what makes the next recovery short. The caller has flushed the segments."""
        self.segments[-1].write_indexes()
        write_snapshot(self.directory, self.log_end_offset, self.producers)
        replace_file(
            self.directory / "leader-epochs",
            "".join(f"{epoch} {offset}\n" for epoch, offset in self.epochs).encode(),
            durable=False,
        )

    def close(self) -> None:
        """Flush and write everything that makes the next start instant."""
        if self.failure is None:
            for file in self.unflushed_files():
                file.sync()
            self.flushed_offset = self.log_end_offset
            self.checkpoint()
        for segment in self.segments:
            segment.forget()

    def remove(self) -> None:
        """Delete every file and the directory itself."""
        for segment in self.segments:
            segment.forget()
        for path in self.directory.iterdir():
            remove_file(path)
        self.directory.rmdir()


def _stamped(batch: bytes | memoryview, attributes: int, max_timestamp: int) -> tuple[bytes, BatchHeader]:
    """The batch with another kind of time in its header (message.timestamp.type), checksummed again."""
    stamped = bytearray(batch)
    struct.pack_into(">h", stamped, 21, attributes)
    struct.pack_into(">q", stamped, 35, max_timestamp)
    struct.pack_into(">I", stamped, 17, crc32c(memoryview(stamped)[CHECKSUMMED_FROM:]))
    return bytes(stamped), read_header(stamped)
