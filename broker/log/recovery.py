"""From files to a log that can be trusted, after a clean stop or after any crash.

After a clean stop only the last few batches are looked at. After a crash everything from the recovery point on is
read: checksums verified, indexes and producer state rebuilt. Bad bytes mean one of two things:

- *a torn tail*: a write that a crash cut short. It was never acknowledged as durable; the log is cut there.
- *rot*: bytes that were written well and have changed since. Cutting there would drop sound batches behind them, so
  the damage stays where it is and is answered with CORRUPT_MESSAGE.

Bytes that do not make up a whole batch, with nothing sound behind them, are a torn tail. Anything else is rot if it
was known to be on the disk (a clean stop, or before the recovery point) or if the machine has not gone down since (the
page cache outlives kill -9, so only the last write can be torn, and it would be short). After a power cut, bad bytes
behind the recovery point are writes that reached the disk in part or out of order: a torn tail again. Where it is not
known what was on the disk, nothing is cut out of the middle of a log.

After an unclean stop, everything behind the recovery point is written again and fsynced before the log is used. A
failed fsync leaves pages that the kernel takes for clean, so a later fsync would succeed without writing them. The cost
is one read and one write of what was written since the last checkpoint, at most a minute of traffic.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.files import list_directory, remove_file, sync_directory
from headgate.broker.log.index import OffsetIndex, TimeIndex
from headgate.broker.log.leader_epochs import read_epochs
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.scan import plausible, scan
from headgate.broker.log.segment import Segment
from headgate.broker.log.segment_manifest import describe, read_manifest
from headgate.broker.log.snapshots import drop_after, load_newest, newest_offset
from headgate.broker.log.start_offset import StoredStart, read_start_offset, write_start_offset
from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.runtime.errors import StorageError
from headgate.wire.record_batch import HEADER_BYTES, BatchHeader, read_header

logger = logging.getLogger("headgate.broker.log")

_LEFTOVERS = (".tmp", ".deleted", ".cleaned", ".swap")


@dataclass(frozen=True, slots=True)
class LastRun:
    """What is known of the process that had the data directory before."""

    stopped_cleanly: bool
    same_boot: bool
    """Whether the machine has stayed up since, as far as is known."""
    recovery_points_known: bool = True
    """False when the file with the recovery points was lost, damaged or has no checksum."""


def open_log(
    directory: Path, settings: TopicSettings, last_run: LastRun, recovery_point: int, leader_epoch: int, now_ms: int
) -> PartitionLog:
    """Open the log in `directory`, which exists, repairing what a crash left."""
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
        # A power cut may bring back removed segments, some and not others. They are no part of the log.
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
        trusted_offset = segment.base_offset
        if last_run.stopped_cleanly or segment.base_offset < recovery_point:
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
        # Batches up to this offset are gone. Continue there in a new segment: no offset is used twice.
        log.roll(now_ms)
    log.flushed_offset = log.log_end_offset if last_run.stopped_cleanly else min(recovery_point, log.log_end_offset)
    drop_after(directory, log.log_end_offset)
    _restore_producers(log, now_ms)
    log.epochs = [entry for entry in log.epochs if entry[1] <= log.log_end_offset]
    log.drop_segments_before_start()
    if log.flushed_offset < log.log_end_offset:
        _make_durable(log)
    if is_cut:
        # The removed segments are not missing at the next start.
        log.note_segments()
    return log


def _begin_empty(log: PartitionLog, known_point: int, now_ms: int) -> None:
    """Go on where a log without segments ended: at its start offset, or where other files say that it was."""
    end = max(log.log_start_offset, known_point)
    if log.losses:
        end = max(end, newest_offset(log.directory))
    if end > log.log_start_offset and not log.losses:
        log.lose(log.log_start_offset, f"all segments are missing; the log was on the disk up to offset {end}")
    log.log_start_offset = log.log_end_offset = log.flushed_offset = end
    log.adopt([Segment(log.directory, end, now_ms)])


def _make_durable(log: PartitionLog) -> None:
    """Write everything behind the flushed offset again and fsync it; a log where that fails stays stopped."""
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
    """A start offset from before checksums: believe it if it lies inside the log, and give it a checksum."""
    if start.offset > end:
        log.lose(0, f"log-start-offset says {start.offset} and the log ends at {end}; no record is deleted for that")
        log.log_start_offset = log.segments[0].base_offset
    try:
        write_start_offset(log.directory, log.log_start_offset)
    except StorageError as error:
        logger.warning("%s: the log start offset gets its checksum later: %s", log.name, error)


def _describe_segments(log: PartitionLog, segments: list[Segment], recovery_point: int, last_run: LastRun) -> int:
    """Read what is known of the segments, and report those that are missing; the offset that the last of them reached.

    The last segment of a log may have had more records: the manifest is not written with every batch.
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
    """Take over index entries that were written when their batches were on the disk; the offset they reach to."""
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
    """Whether a batch that began at `offset` cannot have been torn by the crash, save by being cut short at the end."""
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
    """Read a segment from the trusted offset on, cutting off a torn tail; the offset after its last batch."""
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
            lost = _whole_but_damaged(segment, found.position) if found.end == limit else None
            # Bytes before the recovery point were on the disk: no crash can have torn them.
            is_tail = is_last and found.end == limit and lost is None
            if last_run.recovery_points_known and next_offset < recovery_point:
                is_tail = False
            if is_tail or not _was_durable(next_offset, recovery_point, last_run):
                cut_bytes = limit - found.position
                logger.warning(
                    "%s: cutting %d bytes after offset %d that a crash left", log.name, cut_bytes, next_offset
                )
                segment.truncate(found.position, next_offset)
                return next_offset
            damaged = segment.is_damaged = True
            log.lose(
                next_offset,
                f"{found.end - found.position} bytes at position {found.position} of {segment.path('log').name} are"
                " damaged; the batches behind them are kept",
            )
            next_offset = max(next_offset, lost.last_offset + 1 if lost is not None else 0)
            continue
        segment.note(found.position, header, log.settings.index_interval_bytes)
        _note_epoch(log, header)
        next_offset = header.last_offset + 1
    if not damaged:
        segment.own_from = start
    return next_offset


def _whole_but_damaged(segment: Segment, position: int) -> BatchHeader | None:
    """The header of a last batch that has all its bytes and a wrong checksum. A write cut short looks different."""
    head = segment.file.read(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return None
    header = read_header(head)
    whole = plausible(header, position, segment.size_bytes) and position + header.size_bytes == segment.size_bytes
    return header if whole and header.records_count == header.last_offset_delta + 1 else None


def _note_epoch(log: PartitionLog, header: BatchHeader) -> None:
    if not log.epochs or header.leader_epoch > log.epochs[-1][0]:
        log.epochs.append((header.leader_epoch, header.base_offset))


def _restore_producers(log: PartitionLog, now_ms: int) -> None:
    """The newest sound snapshot, then the batches behind it.

    When those came is not known, and their records may be of any age: counted from now, no producer is forgotten early.
    """
    offset = load_newest(log.directory, log.log_end_offset, log.producers)
    if offset == log.log_end_offset:
        return
    for _, _, header in log.batches_from(max(offset, log.log_start_offset)):
        if header.producer_id >= 0 and header.base_offset >= offset:
            log.producers.record(header, header.base_offset, now_ms)
