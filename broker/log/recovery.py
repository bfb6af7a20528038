"""From files to a log that can be trusted, after a clean stop or after any crash.

After a clean stop only the last few batches are looked at. After a crash everything from the recovery point on is
read: checksums verified, indexes and producer state rebuilt. Bad bytes mean one of two things:

- *a torn tail*: a write that a crash cut short. It was never acknowledged as durable; the log is cut there.
- *rot*: bytes that were written well and have changed since. Cutting there would drop sound batches behind them, so
  the damage stays where it is and is answered with CORRUPT_MESSAGE.

Bytes that do not make up a whole batch, with nothing sound behind them, are a torn tail. Anything else is rot if it
was known to be on the disk (a clean stop, or before the recovery point) or if the machine has not gone down since (the
page cache outlives kill -9, so only the last write can be torn, and it would be short). After a power cut, bad bytes
behind the recovery point are writes that reached the disk in part or out of order: a torn tail again.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from broker.log.files import remove_file
from broker.log.index import OffsetIndex, TimeIndex, read_entries
from broker.log.partition_log import PartitionLog
from broker.log.scan import plausible, scan
from broker.log.segment import Segment
from broker.log.snapshots import drop_after, load_newest
from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, read_header
from broker.state.configs.effective import TopicSettings

logger = logging.getLogger("headgate.broker.log")

_LEFTOVERS = (".tmp", ".deleted", ".cleaned", ".swap")


@dataclass(frozen=True, slots=True)
class LastRun:
    """What is known of the process that had the data directory before."""

    stopped_cleanly: bool
    same_boot: bool
    """Whether the machine has stayed up since."""


def open_log(
    directory: Path, settings: TopicSettings, last_run: LastRun, recovery_point: int, leader_epoch: int, now_ms: int
) -> PartitionLog:
    """Open the log in `directory`, which exists, repairing what a crash left."""
    log = PartitionLog(directory, settings)
    log.leader_epoch = leader_epoch
    names = set(os.listdir(directory))
    for name in names:
        if name.endswith(_LEFTOVERS):
            remove_file(directory / name)
    segments = _segments(directory, names, now_ms)
    if "log-start-offset" in names:
        log.log_start_offset = _stored_start(directory)
    if not segments:
        log.adopt([Segment(directory, log.log_start_offset, now_ms)])
        log.log_end_offset = log.flushed_offset = log.log_start_offset
        return log
    log.log_start_offset = max(log.log_start_offset, segments[0].base_offset)
    log.epochs = _stored_epochs(directory)
    log.adopt(segments)
    first = len(segments) - 1
    if not last_run.stopped_cleanly:
        while first > 0 and segments[first].base_offset > recovery_point:
            first -= 1
    end = segments[first].base_offset
    for number in range(first, len(segments)):
        segment = segments[number]
        trusted_offset = segment.base_offset
        if last_run.stopped_cleanly or segment.base_offset < recovery_point:
            trusted_offset = _trust_indexes(segment, recovery_point, last_run)
        is_last = number == len(segments) - 1
        end = _recover_segment(log, segment, trusted_offset, recovery_point, last_run, is_last=is_last)
        if not is_last and end < segments[number + 1].base_offset and not _was_durable(end, recovery_point, last_run):
            for beyond in segments[number + 1 :]:
                logger.warning("%s: removing segment %d behind the cut", log.name, beyond.base_offset)
                beyond.remove()
            del segments[number + 1 :]
            break
    log.adopt(segments)
    log.log_end_offset = max(end, log.log_start_offset)
    if log.log_end_offset > end:
        # Everything was deleted up to an offset whose batches are gone: go on from there in a segment of its own.
        log.roll(now_ms)
    log.flushed_offset = log.log_end_offset if last_run.stopped_cleanly else min(recovery_point, log.log_end_offset)
    drop_after(directory, log.log_end_offset)
    _restore_producers(log, now_ms)
    log.epochs = [entry for entry in log.epochs if entry[1] <= log.log_end_offset]
    log.drop_segments_before_start()
    return log


def _segments(directory: Path, names: set[str], now_ms: int) -> list[Segment]:
    found = []
    for name in names:
        stem, _, suffix = name.partition(".")
        if suffix == "log" and stem.isdigit():
            status = (directory / name).stat()
            found.append(Segment(directory, int(stem), int(status.st_mtime * 1000) or now_ms, status.st_size))
    return sorted(found, key=lambda segment: segment.base_offset)


def _stored_start(directory: Path) -> int:
    content = read_entries(directory / "log-start-offset")
    return int(content) if content is not None and content.strip().isdigit() else 0


def _stored_epochs(directory: Path) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for line in (read_entries(directory / "leader-epochs") or b"").splitlines():
        fields = line.split()
        if len(fields) == 2 and all(field.isdigit() for field in fields):
            entries.append((int(fields[0]), int(fields[1])))
    return entries


def _trust_indexes(segment: Segment, recovery_point: int, last_run: LastRun) -> int:
    """Take over index entries that were written when their batches were on the disk; the offset they reach to."""
    offsets, times = read_entries(segment.path("index")), read_entries(segment.path("timeindex"))
    if offsets is None or times is None:
        return segment.base_offset
    index, time_index = OffsetIndex.read(offsets, segment.size_bytes), TimeIndex(times)
    if index is None or not time_index.is_sane():
        return segment.base_offset
    if not last_run.stopped_cleanly:
        index.truncate_offsets(recovery_point - segment.base_offset)
    relative, position = index.last()
    if position == 0 or not segment.leads_to(position, segment.base_offset + relative):
        return segment.base_offset
    time_index.truncate(relative)
    segment.adopt_indexes(index, time_index)
    return segment.base_offset + relative


def _was_durable(offset: int, recovery_point: int, last_run: LastRun) -> bool:
    """Whether a batch that began at `offset` cannot have been torn by the crash, save by being cut short at the end."""
    return last_run.stopped_cleanly or last_run.same_boot or offset < recovery_point


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
    next_offset, damaged = trusted_offset, False
    limit = segment.size_bytes
    for found in scan(segment.file, start, limit, next_offset, check=True):
        header = found.header
        if header is None:
            lost = _whole_but_damaged(segment, found.position) if found.end == limit else None
            is_tail = is_last and found.end == limit and lost is None
            if is_tail or not _was_durable(next_offset, recovery_point, last_run):
                cut_bytes = limit - found.position
                logger.warning(
                    "%s: cutting %d bytes after offset %d that a crash left", log.name, cut_bytes, next_offset
                )
                segment.truncate(found.position, next_offset)
                return next_offset
            damaged = True
            logger.error(
                "%s: %d bytes after offset %d are damaged; the batches behind them are kept",
                log.name, found.end - found.position, next_offset,
            )  # fmt: skip
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
