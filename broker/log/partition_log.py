"""The log of one partition: a list of segments. Appends go to the end, and deletion removes from the start.

Batches are opaque. An append sets the base offset and the leader epoch in the first sixteen bytes. The rest goes to the
page cache unchanged, unless the timestamp type has to change. `broker.log.group_commit` makes batches durable.
`broker.log.recovery` restores the log after a crash.
"""

import logging
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from headgate.broker.log.files import LogFile
from headgate.broker.log.high_watermark import HiddenBatch, HiddenBatches
from headgate.broker.log.index import OFFSET_ENTRY_BYTES
from headgate.broker.log.leader_epochs import end_of_epoch, epoch_at, write_epochs
from headgate.broker.log.log_deletion import move_start, remove_old_segments
from headgate.broker.log.producer_state import ProducerStates
from headgate.broker.log.region import Region
from headgate.broker.log.scan import scan
from headgate.broker.log.segment import Segment
from headgate.broker.log.segment_manifest import write_manifest
from headgate.broker.log.snapshots import write_snapshot
from headgate.broker.log.time_search import Found, Searched, find_largest_timestamp, find_timestamp
from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.runtime.errors import StorageError
from headgate.wire.buffer import Buffer
from headgate.wire.errors import CorruptBatch
from headgate.wire.record_batch import (
    APPEND_FIELDS,
    ATTRIBUTES_AT,
    LOG_APPEND_TIME_FLAG,
    MAX_TIMESTAMP_AT,
    BatchHeader,
    read_header,
    seal,
)

# Index entries store offsets and positions as 32-bit numbers relative to their segment.
relative_offset_max = 2**31 - 1

# Sealed segments of one log that stay open after a read. A consumer reads segments one after the other.
open_sealed_segments_max = 2

logger = logging.getLogger("headgate.broker.log")


class OffsetOutOfRange(Exception):
    """The requested offset is neither in the log nor the log end offset."""


class Loss(NamedTuple):
    """Stored records, starting at `offset`, that are missing or damaged."""

    offset: int
    description: str


class PartitionLog:
    def __init__(self, directory: Path, settings: TopicSettings) -> None:
        self.directory = directory
        self.name = directory.name
        self.settings = settings
        self.segments: list[Segment] = []
        self.log_start_offset: int
        self.log_end_offset: int
        self.flushed_offset: int
        """Everything before this offset is on the disk."""
        self.hidden = HiddenBatches()
        self.on_visible: Callable[[int], None] | None = None
        """Called when a flush moves the high watermark, with the number of bytes that became visible."""
        self.unflushed_since_ms = 0
        """The last time at which the log was seen fully flushed, on the monotonic clock."""
        self.producers = ProducerStates()
        self.leader_epoch: int
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, first offset written in it), ascending."""
        self.failure: StorageError | None = None
        """An unrecoverable disk error. The log rejects writes until the broker restarts."""
        self.is_deleted = False
        """The topic is deleted. Write nothing more: another topic may use the name of the directory."""
        self.losses: list[Loss] = []
        """The missing or damaged records that recovery found."""
        self._base_offsets: list[int] = []
        self._open_sealed: list[Segment] = []
        self._tail_offset = -1
        self._tail_position = 0

    @property
    def high_watermark(self) -> int:
        """Consumers see everything before this offset (`broker.log.high_watermark`)."""
        hidden = self.hidden.first
        return self.log_end_offset if hidden is None else hidden.base_offset

    @property
    def last_stable_offset(self) -> int:
        """Equals the high watermark, because the broker has no open transactions yet."""
        return self.high_watermark

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.messages requires an fsync before further acknowledgements."""
        return self.log_end_offset - self.flushed_offset >= self.settings.flush_messages

    def adopt(self, segments: list[Segment]) -> None:
        """Use the segments that recovery found."""
        self.segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self._tail_offset = -1

    def append(self, batch: Buffer, header: BatchHeader, now_ms: int, *, awaits_flush: bool = False) -> int:
        """Write a validated batch to the page cache and return its base offset. Raises StorageError.

        With `awaits_flush`, consumers see the batch only when it is on the disk. The same applies if `flush.messages`
        requires a flush.
        """
        if self.failure is not None:
            raise self.failure
        settings = self.settings
        offset = self.log_end_offset
        if settings.uses_log_append_time:
            batch, header = _stamped(batch, header.attributes | LOG_APPEND_TIME_FLAG, now_ms)
        elif header.attributes & LOG_APPEND_TIME_FLAG:
            # The topic uses CreateTime: clear the LogAppendTime flag that the client set.
            batch, header = _stamped(batch, header.attributes & ~LOG_APPEND_TIME_FLAG, header.max_timestamp)
        segment = self.segments[-1]
        size = header.batch_length + 12
        if self._must_roll(segment, size, header, offset, now_ms):
            segment = self.roll(now_ms)
        try:
            segment.append(
                APPEND_FIELDS.pack(offset, header.batch_length, self.leader_epoch),
                memoryview(batch)[APPEND_FIELDS.size :],
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
        self.log_end_offset = end = offset + header.last_offset_delta + 1
        if self._tail_position == 0:
            self.note_segments()
        awaits_flush = awaits_flush or end - self.flushed_offset >= settings.flush_messages
        if awaits_flush or self.hidden.first is not None:
            self.hidden.add(HiddenBatch(offset, end, segment, size, awaits_flush=awaits_flush))
        return offset

    def note_segments(self) -> None:
        """Write the segment manifest now, so that recovery detects a missing segment before the next checkpoint."""
        try:
            write_manifest(self.directory, self.segments, self.log_end_offset)
        except StorageError as error:
            logger.warning("%s: the list of segments is not up to date: %s", self.name, error)

    def take_back(self, offset: int, position: int) -> None:
        """Undo the last append: truncate the last segment to `position` and the log to `offset`.

        The batch was never visible, and everything before it is on the disk. Raises StorageError.
        """
        self.segments[-1].cut(position, offset)
        self.log_end_offset, self._tail_offset = offset, -1
        self.hidden = HiddenBatches()

    def note_flushed(self, offset: int) -> int:
        """Record that everything before `offset` is on the disk. Returns the number of bytes that become visible."""
        self.flushed_offset = max(self.flushed_offset, offset)
        return self.hidden.flushed(self.flushed_offset)

    def fail(self, error: StorageError) -> None:
        if error.recoverable:
            # Log only the text: a log handler that keeps the exception would keep the segment's file open.
            logger.error("%s: %s; the write is refused, and later ones are tried again", self.name, str(error))
        elif self.failure is None:
            self.failure = error
            logger.critical("%s: %s; the partition is stopped until the broker restarts", self.name, error)

    def stop(self, error: StorageError) -> None:
        """Reject every write until a restart, even if the error is recoverable."""
        self.failure = error
        logger.critical("%s: %s; the partition is stopped until the broker restarts", self.name, error)

    def lose(self, offset: int, description: str) -> None:
        """Record and log a loss that recovery found."""
        self.losses.append(Loss(offset, description))
        logger.error("%s: from offset %d on: %s", self.name, offset, description)

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
        """Seal the last segment and start a new one at the log end offset. Group commit flushes the sealed segment."""
        sealed = self.segments[-1]
        if sealed.size_bytes == 0 and sealed.base_offset == self.log_end_offset:
            # The last segment is still empty, for example after a failed write. A new one would have the same file.
            return sealed
        try:
            sealed.write_indexes()
            write_snapshot(self.directory, self.log_end_offset, self.producers)
            write_manifest(self.directory, self.segments, self.log_end_offset)
        except StorageError as error:
            self.fail(error)
            # Recovery can rebuild these files. A full disk must not prevent retention from removing the segment.
            if not error.is_out_of_space:
                raise
        segment = Segment(self.directory, self.log_end_offset, now_ms)
        self.segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._tail_offset = -1
        return segment

    def unflushed_files(self) -> list[LogFile]:
        """Return the files of the segments with unflushed offsets. An fsync of these files flushes the whole log."""
        first = bisect_right(self._base_offsets, self.flushed_offset) - 1
        return [segment.file for segment in self.segments[max(first, 0) :] if segment.size_bytes]

    def unflushed_ranges(self) -> Iterator[tuple[Segment, int]]:
        """Yield each segment with unflushed offsets, and a position at or before its first unflushed batch."""
        first = bisect_right(self._base_offsets, self.flushed_offset) - 1
        for segment in self.segments[max(first, 0) :]:
            if segment.size_bytes:
                yield segment, segment.index.floor(max(self.flushed_offset - segment.base_offset, 0))[1]

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, wait: bool = True) -> Region | None:
        """Return up to `max_bytes` of visible batches, starting with the batch that contains `offset`.

        Returns None if `offset` is at or above the high watermark. With `at_least_one`, the first batch is complete
        even if it exceeds `max_bytes`. Raises OffsetOutOfRange, CorruptBatch. Without `wait`, raises ColdRead if a
        lookup would wait for the disk.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset)
        hidden = self.hidden.first
        if offset >= (self.log_end_offset if hidden is None else hidden.base_offset):
            return None
        if offset == self._tail_offset:
            # Fast path: a consumer at the tail fetches the last appended batch.
            segment, position = self.segments[-1], self._tail_position
            length = segment.size_bytes - position
            if length > max_bytes and not at_least_one:
                length = 0
            return segment.region(position, length, offset, length, wait=wait)
        number = bisect_right(self._base_offsets, offset) - 1
        while number < len(self.segments):
            segment = self._opened(number)
            try:
                position, header = segment.locate(offset, wait=wait)
            except LookupError:
                number += 1
                continue
            first = header.batch_length + 12
            if max_bytes < first and not at_least_one:
                return Region(segment.file, position, 0)
            length = max(max_bytes, first)
            if hidden is not None and hidden.segment is segment and position + length >= hidden.position:
                length = hidden.position - position
            else:
                length = segment.whole_batches(position, length, first, wait=wait)
            return segment.region(position, length, header.base_offset, first, wait=wait)
        raise CorruptBatch(f"{self.name}: no batch holds offset {offset}")

    def has_more(self, region: Region) -> bool:
        """Whether visible batches follow the region that `read` returned."""
        last, hidden = self.segments[-1], self.hidden.first
        end = last.size_bytes
        if hidden is not None:
            last, end = hidden.segment, hidden.position
        number = bisect_right(self._base_offsets, last.base_offset) - 1
        if end == 0 and number > 0:
            last = self.segments[number - 1]
            end = last.size_bytes
        return region.file is not last.file or region.position + region.length < end

    def _opened(self, number: int) -> Segment:
        """Return a segment to read from. If too many sealed segments are open, release the one opened first."""
        segment = self.segments[number]
        if number < len(self.segments) - 1 and segment not in self._open_sealed:
            self._open_sealed.append(segment)
            if len(self._open_sealed) > open_sealed_segments_max:
                self._open_sealed.pop(0).forget()
        return segment

    def batches_from(self, offset: int, *, wait: bool = True) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """Yield the batches that end at `offset` or later and match their checksums. For cold paths."""
        for number in range(max(bisect_right(self._base_offsets, offset) - 1, 0), len(self.segments)):
            segment = self._opened(number)
            next_offset, start = segment.entry_point(offset, wait=wait)
            for found in scan(segment.file, start, segment.size_bytes, next_offset, check=True, wait=wait):
                if found.header is not None and found.header.last_offset >= offset:
                    yield segment, found.position, found.header

    def offset_for_timestamp(self, timestamp: int, *, wait: bool = True, searched: Searched | None = None) -> Found:
        """Return (offset, timestamp) of the first visible record at `timestamp` or later."""
        return find_timestamp(self, timestamp, wait=wait, searched=searched)

    def offset_of_largest_timestamp(self, *, wait: bool = True, searched: Searched | None = None) -> Found:
        """Return (offset, timestamp) of the visible record with the largest timestamp."""
        return find_largest_timestamp(self, wait=wait, searched=searched)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (largest epoch at or before `epoch`, first offset after it), or (-1, -1) for an unknown epoch."""
        if epoch == -1 or epoch > self.leader_epoch:
            return -1, -1
        current = (self.leader_epoch, self.log_end_offset)
        return end_of_epoch(epoch, self.epochs, current, self.log_start_offset)

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which `offset` was written. At the log end offset, it is the current epoch."""
        return self.leader_epoch if offset >= self.log_end_offset else epoch_at(offset, self.epochs)

    def delete_records(self, offset: int) -> int:
        """Advance the log start offset to `offset`, durably, and return it. -1 stands for the high watermark.

        Never moves the log start offset back. Raises OffsetOutOfRange, StorageError.
        """
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(offset)
        if offset > self.log_start_offset:
            move_start(self, offset)
        return self.log_start_offset

    def drop_segments_before_start(self) -> None:
        """Remove the sealed segments that end at or before the log start offset."""
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.log_start_offset:
            segment = self.segments.pop(0)
            self._base_offsets.pop(0)
            if segment in self._open_sealed:
                self._open_sealed.remove(segment)
            segment.remove()

    def apply_retention(self, now_ms: int, segments_max: int = sys.maxsize) -> int:
        """Remove at most `segments_max` segments that exceed retention, oldest first. Returns the number removed."""
        return remove_old_segments(self, now_ms, segments_max)

    def checkpoint(self) -> None:
        """Write the indexes, snapshot, epochs and manifest that shorten the next recovery.

        The caller flushes the segments first.
        """
        self.segments[-1].write_indexes()
        write_snapshot(self.directory, self.log_end_offset, self.producers)
        write_epochs(self.directory, self.epochs)
        write_manifest(self.directory, self.segments, self.log_end_offset)

    def close(self) -> None:
        """Flush, write a checkpoint and close the segments. A failed log skips the flush and the checkpoint."""
        if self.failure is None:
            for file in self.unflushed_files():
                file.sync()
            self.flushed_offset = self.log_end_offset
            self.checkpoint()
        for segment in self.segments:
            segment.close()

    def discard(self) -> None:
        """Close every file after the topic is deleted.

        Otherwise a reference cycle could keep files open, and their blocks in use, until the garbage collector runs.
        """
        self.is_deleted = True
        for segment in self.segments:
            segment.discard()


def _stamped(batch: Buffer, attributes: int, max_timestamp: int) -> tuple[bytes, BatchHeader]:
    """Return a copy of the batch with new attributes (message.timestamp.type), max timestamp and checksum."""
    stamped = bytearray(batch)
    struct.pack_into(">h", stamped, ATTRIBUTES_AT, attributes)
    struct.pack_into(">q", stamped, MAX_TIMESTAMP_AT, max_timestamp)
    return seal(stamped), read_header(stamped)
