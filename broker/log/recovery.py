"""Recovery: opens the log of a partition after a clean stop or a crash.

After a clean stop, recovery reads only the last few batches. After a crash, it reads everything from the recovery point
on. It verifies checksums and rebuilds indexes and producer state. It distinguishes two kinds of bad bytes:

- *Torn tail*: a write that a crash interrupted. It was never acknowledged as durable. Recovery truncates the log there.
- *Bit rot*: bytes that changed after a successful write. Truncation would drop valid batches behind them, so the
  damaged bytes stay in place. A fetch of them returns CORRUPT_MESSAGE.

Recovery classifies bad bytes by these rules, in this order:

1. An incomplete batch at the log end is a torn tail, unless it lies before a known recovery point.
2. After a clean stop, or before the recovery point, bad bytes are bit rot: they were on the disk.
3. Without a reboot, they are bit rot: the page cache survives kill -9, so a crash tears only the last write.
4. If the recovery points are unknown, they count as bit rot. Recovery truncates nothing in the middle of a log.
5. After a power cut, they are a torn tail: writes reached the disk partially or out of order.

After an unclean stop, recovery rewrites and fsyncs everything behind the recovery point before the log is used. A
failed fsync leaves pages that the kernel marks as clean, so a later fsync would succeed without writing them. The cost
is one read and one write of the data since the last checkpoint: at most a minute of traffic.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.files import list_directory, remove_file, sync_directory
from headgate.broker.log.index import OffsetIndex, TimeIndex
from headgate.broker.log.leader_epochs import read_epochs
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.scan import chunk_bytes_max, plausible, scan
from headgate.broker.log.segment import Segment
from headgate.broker.log.segment_manifest import describe, read_manifest
from headgate.broker.log.snapshots import drop_after, load_newest, newest_offset
from headgate.broker.log.start_offset import StoredStart, read_start_offset, write_start_offset
from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.runtime.errors import StorageError
from headgate.wire.record_batch import ATTRIBUTES_AT, HEADER_BYTES, BatchHeader, read_header

logger = logging.getLogger("headgate.broker.log")

_LEFTOVERS = (".tmp", ".deleted", ".cleaned", ".swap")


@dataclass(frozen=True, slots=True)
class LastRun:
    """Facts about the previous process that used the data directory."""

    stopped_cleanly: bool
    same_boot: bool
    """Whether the machine has not rebooted since then. True if the boot id is unknown."""
    recovery_points_known: bool = True
    """False if the file with the recovery points is missing, damaged or without a checksum."""


def open_log(
    directory: Path, settings: TopicSettings, last_run: LastRun, recovery_point: int, leader_epoch: int, now_ms: int
) -> PartitionLog:
    """Open the log in the existing `directory` and repair it after a crash."""
    log = PartitionLog(directory, settings)
    log.leader_epoch = leader_epoch
    names = set(list_directory(directory))
    for name in names:
        if name.endswith(_LEFTOVERS):
            remove_file(directory / name)
    segments = _segments(directory, names, now_ms)
    start = _stored_start(log)
    log.log_start_offset = start.offset if start is not None else 0
    known_point = recovery_point if last_run.recovery_points_known else 0
    if not segments:
        _begin_empty(log, max(known_point, _describe_segments(log, segments, recovery_point, last_run)), now_ms)
        return log
    if start is not None and start.is_checked:
        # A power cut may restore some removed segments. They are not part of the log, so remove them again.
        while len(segments) > 1 and segments[1].base_offset <= start.offset:
            segments.pop(0).remove()
    if segments[0].base_offset > log.log_start_offset:
        log.lose(log.log_start_offset, f"the records before offset {segments[0].base_offset} are missing")
        log.log_start_offset = segments[0].base_offset
    log.epochs = _stored_epochs(log)
    known_point = max(known_point, _describe_segments(log, segments, recovery_point, last_run))
    log.adopt(segments)
    first = len(segments) - 1
    if not last_run.stopped_cleanly:
        while first > 0 and segments[first].base_offset > recovery_point:
            first -= 1
    end, is_cut = segments[first].base_offset, False
    for number in range(first, len(segments)):
        segment = segments[number]
        trusted_offset = _trust_indexes(segment, recovery_point, last_run)
        is_last = number == len(segments) - 1
        end = _recover_segment(log, segment, trusted_offset, recovery_point, last_run, is_last=is_last)
        if is_last or end >= segments[number + 1].base_offset:
            continue
        if _was_durable(end, recovery_point, last_run):
            log.lose(end, f"the records before offset {segments[number + 1].base_offset} are missing or damaged")
            continue
        for beyond in segments[number + 1 :]:
            logger.warning("%s: removing segment %d behind the cut", log.name, beyond.base_offset)
            beyond.remove()
        del segments[number + 1 :]
        is_cut = True
        break
    log.adopt(segments)
    if start is not None and not start.is_checked:
        _confirm_start(log, start, end)
    if end < known_point:
        log.lose(end, f"the log was on the disk up to offset {known_point}; new records begin there")
    log.log_end_offset = max(end, log.log_start_offset, known_point)
    if log.log_end_offset > end:
        # Batches up to this offset are lost. Continue in a new segment, so that no offset is used twice.
        log.roll(now_ms)
    log.flushed_offset = log.log_end_offset if last_run.stopped_cleanly else min(recovery_point, log.log_end_offset)
    drop_after(directory, log.log_end_offset)
    _restore_producers(log, now_ms)
    log.epochs = [entry for entry in log.epochs if entry[1] < log.log_end_offset]
    log.drop_segments_before_start()
    if log.flushed_offset < log.log_end_offset:
        _make_durable(log)
    if is_cut:
        # Update the manifest: the next start must not report the removed segments as missing.
        log.note_segments()
    return log


def _begin_empty(log: PartitionLog, known_point: int, now_ms: int) -> None:
    """Continue a log without segments at its last known end offset.

    This is the larger of the log start offset and `known_point`. After a loss, the newest snapshot's offset counts too.
    """
    end = max(log.log_start_offset, known_point)
    if log.losses:
        end = max(end, newest_offset(log.directory))
    if end > log.log_start_offset and not log.losses:
        log.lose(log.log_start_offset, f"all segments are missing; the log was on the disk up to offset {end}")
    log.log_start_offset = log.log_end_offset = log.flushed_offset = end
    log.adopt([Segment(log.directory, end, now_ms)])


def _make_durable(log: PartitionLog) -> None:
    """Rewrite and fsync everything behind the flushed offset. A failure stops the log."""
    try:
        for segment, position in log.unflushed_ranges():
            segment.file.rewrite(position, segment.size_bytes)
            segment.file.sync()
        sync_directory(log.directory)
    except StorageError as error:
        log.stop(error)
        return
    log.flushed_offset = log.log_end_offset


def _segments(directory: Path, names: set[str], now_ms: int) -> list[Segment]:
    found = []
    for name in names:
        stem, _, suffix = name.partition(".")
        if suffix == "log" and stem.isdigit():
            status = (directory / name).stat()
            found.append(Segment(directory, int(stem), int(status.st_mtime * 1000) or now_ms, status.st_size))
    return sorted(found, key=lambda segment: segment.base_offset)


def _stored_start(log: PartitionLog) -> StoredStart | None:
    try:
        return read_start_offset(log.directory)
    except DamagedFile as error:
        log.lose(0, f"{error}; records that were deleted may be there again")
        return None


def _confirm_start(log: PartitionLog, start: StoredStart, end: int) -> None:
    """Accept a start offset without a checksum if it is at or before the log end. Store it with a checksum."""
    if start.offset > end:
        log.lose(0, f"log-start-offset says {start.offset} and the log ends at {end}; no record is deleted for that")
        log.log_start_offset = log.segments[0].base_offset
    try:
        write_start_offset(log.directory, log.log_start_offset)
    except StorageError as error:
        logger.warning("%s: the log start offset gets its checksum later: %s", log.name, error)


def _describe_segments(log: PartitionLog, segments: list[Segment], recovery_point: int, last_run: LastRun) -> int:
    """Apply the manifest to the segments and report missing segments.

    Returns the largest end offset of the missing segments, or 0. A missing last segment may have had more records,
    because the manifest is not written with every batch.
    """
    try:
        rows = read_manifest(log.directory)
    except DamagedFile as error:
        logger.error("%s: %s; segments are read before retention removes them", log.name, error)
        return 0
    reached = 0
    for row in describe(segments, rows):
        if row.end_offset > max(row.base_offset, log.log_start_offset) and _was_durable(
            row.base_offset, recovery_point, last_run
        ):
            reached = max(reached, row.end_offset)
            description = f"the segment with the records before offset {row.end_offset} is missing"
            is_last = row is rows[-1]
            log.lose(row.base_offset, f"{description}, and with it all records behind them" if is_last else description)
    return reached


def _stored_epochs(log: PartitionLog) -> list[tuple[int, int]]:
    try:
        return read_epochs(log.directory)
    except DamagedFile as error:
        logger.error("%s: %s; epochs are read from the batches", log.name, error)
        return []


def _trust_indexes(segment: Segment, recovery_point: int, last_run: LastRun) -> int:
    """Load the index entries of batches that were on the disk. Returns the offset of the last trusted entry."""
    found = segment.read_indexes()
    if found is None:
        return segment.base_offset
    index, time_index = found
    if not last_run.stopped_cleanly:
        index.truncate_offsets(recovery_point - segment.base_offset)
    relative, position = index.last()
    if position == 0 or not segment.leads_to(position, segment.base_offset + relative):
        return segment.base_offset
    time_index.truncate(relative)
    segment.adopt_indexes(index, time_index)
    segment.has_confirmed_times = segment.index_checksums is not None
    return segment.base_offset + relative


def _was_durable(offset: int, recovery_point: int, last_run: LastRun) -> bool:
    """Whether bad bytes at `offset` count as bit rot. An incomplete batch at the end of the log is an exception."""
    is_unknown = not last_run.recovery_points_known
    return last_run.stopped_cleanly or last_run.same_boot or is_unknown or offset < recovery_point


def _recover_segment(
    log: PartitionLog,
    segment: Segment,
    trusted_offset: int,
    recovery_point: int,
    last_run: LastRun,
    *,
    is_last: bool,
) -> int:
    """Read a segment from the trusted offset on and truncate a torn tail. Returns the offset after its last batch."""
    start = 0
    if trusted_offset > segment.base_offset:
        start = segment.index.last()[1]
    else:
        segment.adopt_indexes(OffsetIndex(), TimeIndex())
        segment.has_confirmed_times, segment.is_damaged = True, False
    next_offset, damaged = trusted_offset, False
    limit = segment.size_bytes
    for found in scan(segment.file, start, limit, next_offset, check=True):
        header = found.header
        if header is None:
            lost_offsets = _offsets_of_whole_batch(segment, found.position) if found.end == limit else 0
            # Bytes before the recovery point were on the disk, so a crash cannot have torn them.
            is_tail = is_last and found.end == limit and lost_offsets == 0
            if last_run.recovery_points_known and next_offset < recovery_point:
                is_tail = False
            if is_tail or not _was_durable(next_offset, recovery_point, last_run):
                logger.warning(
                    "%s: cutting %d bytes after offset %d that a crash left",
                    log.name,
                    limit - found.position,
                    next_offset,
                )
                segment.truncate(found.position, next_offset)
                return next_offset
            damaged = segment.is_damaged = True
            log.lose(
                next_offset,
                f"{found.end - found.position} bytes at position {found.position} of {segment.path('log').name} are"
                " damaged; the batches behind them are kept",
            )
            next_offset += lost_offsets
            continue
        segment.note(found.position, header, log.settings.index_interval_bytes)
        _note_epoch(log, header)
        next_offset = header.last_offset + 1
    if not damaged:
        segment.own_from = start
    return next_offset


def _offsets_of_whole_batch(segment: Segment, position: int) -> int:
    """Return the number of offsets of a last batch that is complete but damaged, or 0.

    An interrupted write leaves an incomplete batch instead. A batch is complete if its length leads to the end of the
    file, or if its checksum matches all bytes up to there. The checksum does not cover the length.
    """
    head = segment.file.read(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return 0
    header = read_header(head)
    has_length = plausible(header, position, segment.size_bytes) and position + header.size_bytes == segment.size_bytes
    if not has_length and _checksum(segment, position + ATTRIBUTES_AT) != header.crc:
        return 0
    # Damage in one of the two fields can make it too small. The larger one uses no offset twice.
    return max(header.last_offset_delta + 1, header.records_count, 1)


def _checksum(segment: Segment, position: int) -> int:
    """Return the CRC32C of all bytes from `position` to the end of the segment."""
    checksum = 0
    for start in range(position, segment.size_bytes, chunk_bytes_max):
        checksum = crc32c(segment.file.read(start, min(chunk_bytes_max, segment.size_bytes - start)), checksum)
    return checksum


def _note_epoch(log: PartitionLog, header: BatchHeader) -> None:
    """Add the leader epoch of a batch. The checksum does not cover it: an epoch after the current one is damage."""
    if header.leader_epoch <= log.leader_epoch and (not log.epochs or header.leader_epoch > log.epochs[-1][0]):
        log.epochs.append((header.leader_epoch, header.base_offset))


def _restore_producers(log: PartitionLog, now_ms: int) -> None:
    """Restore the newest valid snapshot and replay the batches behind it.

    The write times of these batches are unknown. Expiry counts from now, so that no producer expires early.
    """
    offset = load_newest(log.directory, log.log_end_offset, log.producers)
    if offset == log.log_end_offset:
        return
    for _, _, header in log.batches_from(max(offset, log.log_start_offset)):
        if header.producer_id >= 0 and header.base_offset >= offset:
            log.producers.record(header, header.base_offset, now_ms)
