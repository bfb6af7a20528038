"""Deletion at the start of a log: DeleteRecords and retention. Both also work on a full disk."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headgate.broker.log.files import sync_directory
from headgate.broker.log.scan import scan
from headgate.broker.log.start_offset import write_start_offset
from headgate.broker.runtime.errors import StorageError

if TYPE_CHECKING:
    from headgate.broker.log.partition_log import PartitionLog
    from headgate.broker.log.segment import Segment


def move_start(log: "PartitionLog", offset: int) -> None:
    """Make `offset` the log start offset, durably, and remove the segments before it. Raises StorageError.

    Stores the offset before it removes segments. A crash in between leaves a segment to remove, never a gap. On a full
    disk, it removes segments first to free space. The first remaining segment then marks the start.
    """
    try:
        write_start_offset(log.directory, offset)
    except StorageError as error:
        if not error.is_out_of_space or len(log.segments) < 2 or log.segments[1].base_offset > offset:
            raise
        while len(log.segments) > 1 and log.segments[1].base_offset <= offset:
            # Remove segments one by one, oldest first. Sync each removal, so that a power cut restores no older one.
            log.log_start_offset = log.segments[1].base_offset
            log.drop_segments_before_start()
            sync_directory(log.directory)
        try:
            write_start_offset(log.directory, offset)
        except StorageError:
            if log.log_start_offset < offset:
                raise
    log.log_start_offset = offset
    log.drop_segments_before_start()


def remove_deleted_tail(log: "PartitionLog", now_ms: int) -> None:
    """Remove the last segment if all of its records are deleted, to free its space. Raises StorageError."""
    if log.log_start_offset == log.log_end_offset and log.segments[-1].size_bytes:
        log.roll(now_ms)
        log.drop_segments_before_start()


def _is_expired(log: "PartitionLog", segment: "Segment", now_ms: int) -> bool:
    """Whether the segment's largest timestamp is older than retention.ms.

    If no record has a timestamp, `created_ms` counts. If a batch is damaged, the later of both counts.
    """
    timestamp = segment.largest_timestamp
    if timestamp < 0 or segment.is_damaged:
        timestamp = max(timestamp, segment.created_ms)
    return 0 <= log.settings.retention_ms < now_ms - timestamp


def confirm_times(log: "PartitionLog", now_ms: int) -> Iterator[None]:
    """Read the timestamps of the oldest segment from its batches, if only an index says that it is expired.

    Runs before retention by time. Yields after each batch. Raises OSError, StorageError.
    """
    oldest = log.segments[0]
    if oldest.has_confirmed_times or not log.settings.deletes_old_segments:
        return
    if len(log.segments) > 1 and oldest.largest_timestamp < 0:
        found = oldest.read_indexes()
        if found is None or found[1].last()[0] < 0:
            # No index has the timestamps. A rebuild of the indexes would block the event loop.
            yield from _read_times(oldest)
            return
        oldest.load_times()
    if _is_expired(log, oldest, now_ms):
        yield from _read_times(oldest)


def _read_times(segment: "Segment") -> Iterator[None]:
    """Read the timestamps from the batches. Yields after each batch. Raises OSError, StorageError."""
    size_bytes, largest, is_damaged = segment.size_bytes, (-1, segment.base_offset), False
    for found in scan(segment.file, 0, size_bytes, segment.base_offset, check=True):
        yield
        if found.header is None:
            is_damaged = True
        elif found.header.max_timestamp > largest[0]:
            largest = found.header.max_timestamp, found.header.base_offset
    if segment.size_bytes == size_bytes:
        segment.largest_timestamp, segment.largest_timestamp_offset = largest
        segment.is_damaged, segment.has_confirmed_times = is_damaged, True


def remove_old_segments(log: "PartitionLog", now_ms: int, segments_max: int) -> int:
    """Apply retention.ms and retention.bytes: remove at most `segments_max` segments, oldest first.

    Returns the number of removed segments. Raises StorageError.
    """
    settings, removed = log.settings, 0
    if not settings.deletes_old_segments:
        return 0
    total = log.size_bytes
    while removed < segments_max:
        oldest = log.segments[0]
        if oldest.size_bytes == 0:
            return removed
        is_last = len(log.segments) == 1
        expired = oldest.has_confirmed_times and _is_expired(log, oldest, now_ms)
        surplus = settings.retention_bytes >= 0 and total - oldest.size_bytes >= settings.retention_bytes
        end = log.log_end_offset if is_last else log.segments[1].base_offset
        if not (expired or surplus) or log.high_watermark < end:
            return removed
        if is_last:
            log.roll(now_ms)
        total -= oldest.size_bytes
        move_start(log, max(log.log_start_offset, end))
        removed += 1
    return removed
