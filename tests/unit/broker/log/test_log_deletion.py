"""Deletion at the start of a log: on a full disk, with limits, and by timestamps."""

import errno
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.log import log_deletion
from headgate.broker.log.log_deletion import confirm_times, move_start, remove_old_segments
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.start_offset import write_start_offset
from headgate.broker.runtime.errors import StorageError
from tests.unit.broker.log.logs import NOW_MS, append, assert_dense, fill, numbered, open_at, stamped

HOUR_MS = 3_600_000
CRC_AT = 17


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """A log of ten segments with three offsets each."""
    log = open_at(tmp_path)
    for _ in range(10):
        fill(log, 1)
        log.roll(NOW_MS)
    return log


def full_disk(monkeypatch: pytest.MonkeyPatch, failures: int, number: int = errno.ENOSPC) -> list[int]:
    """Makes the next writes of the start offset fail. Returns the offsets that were to be written."""
    wanted: list[int] = []

    def write(directory: Path, offset: int) -> None:
        wanted.append(offset)
        if len(wanted) <= failures:
            raise StorageError("no space", number)
        write_start_offset(directory, offset)

    monkeypatch.setattr(log_deletion, "write_start_offset", write)
    return wanted


@pytest.mark.parametrize(("offset", "segments"), [(2, 11), (3, 10), (4, 10), (15, 6), (30, 1)])
def test_a_full_disk_does_not_prevent_a_deletion_that_frees_space(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch, offset: int, segments: int
) -> None:
    wanted = full_disk(monkeypatch, 1)
    if offset < 3:
        # No segment ends before the offset, so the deletion frees no space.
        with pytest.raises(StorageError):
            move_start(log, offset)
        assert log.log_start_offset == 0
    else:
        move_start(log, offset)
        assert log.log_start_offset == offset
        assert wanted == [offset, offset]
    assert len(log.segments) == segments
    log.close()
    reopened = open_at(log.directory)
    assert reopened.log_start_offset == log.log_start_offset
    assert_dense(reopened)


@pytest.mark.parametrize(("offset", "is_stored"), [(15, True), (16, False)])
def test_on_a_disk_that_stays_full_the_first_segment_marks_the_start(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch, offset: int, is_stored: bool
) -> None:
    full_disk(monkeypatch, 2)
    if is_stored:
        move_start(log, offset)
    else:
        with pytest.raises(StorageError):
            move_start(log, offset)
    assert log.log_start_offset == 15
    log.close()
    reopened = open_at(log.directory)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (15, 30)
    assert_dense(reopened)


def test_a_log_of_two_segments_can_free_the_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_at(tmp_path)
    fill(log, 1)
    log.roll(NOW_MS)
    fill(log, 1)
    full_disk(monkeypatch, 1)
    move_start(log, 4)
    assert (log.log_start_offset, len(log.segments)) == (4, 1)
    # The last segment stays: its deletion would free nothing.
    full_disk(monkeypatch, 1)
    with pytest.raises(StorageError):
        move_start(log, 5)
    assert log.log_start_offset == 4


def test_another_disk_error_deletes_nothing(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch, 1, errno.EIO)
    with pytest.raises(StorageError):
        move_start(log, 15)
    assert (log.log_start_offset, len(log.segments)) == (0, 11)
    assert_dense(log)


@pytest.mark.parametrize(("segments_max", "removed"), [(0, 0), (1, 1), (3, 3), (10, 10), (50, 10)])
def test_retention_removes_a_limited_number_of_segments_at_once(
    tmp_path: Path, segments_max: int, removed: int
) -> None:
    log = open_at(tmp_path, retention_bytes="0")
    for _ in range(10):
        fill(log, 1)
        log.roll(NOW_MS)
    assert remove_old_segments(log, NOW_MS, segments_max) == removed
    assert log.log_start_offset == 3 * removed
    assert_dense(log)


@pytest.mark.parametrize("kept", [0, 1, 4, 10])
def test_retention_by_size_is_exact(tmp_path: Path, kept: int) -> None:
    log = open_at(tmp_path)
    sizes = []
    for _ in range(10):
        fill(log, 1)
        sizes.append(log.segments[-1].size_bytes)
        log.roll(NOW_MS)
    log.settings = open_at(tmp_path / "other", retention_bytes=str(sum(sizes[10 - kept :]))).settings
    remove_old_segments(log, NOW_MS, 100)
    assert log.size_bytes == sum(sizes[10 - kept :])
    log.settings = open_at(tmp_path / "another", cleanup_policy="compact", retention_bytes="0").settings
    assert remove_old_segments(log, NOW_MS, 100) == 0


@pytest.mark.parametrize(
    ("timestamp", "age_ms", "removed"),
    [
        (NOW_MS, HOUR_MS, 0),
        (NOW_MS, HOUR_MS + 1, 1),
        # The timestamp 0 is a time in 1970. Without timestamps, the creation of the segment counts.
        (0, 0, 1),
        (-1, HOUR_MS, 0),
        (-1, HOUR_MS + 1, 1),
    ],
)
def test_records_expire_by_their_largest_timestamp(tmp_path: Path, timestamp: int, age_ms: int, removed: int) -> None:
    log = open_at(tmp_path, retention_ms=str(HOUR_MS))
    append(log, stamped(timestamp))
    log.segments[0].created_ms = NOW_MS
    assert remove_old_segments(log, NOW_MS + age_ms, 10) == removed
    assert log.log_start_offset == removed


@pytest.mark.parametrize("damage", [False, True])
def test_times_of_an_index_are_confirmed_from_the_batches(tmp_path: Path, damage: bool) -> None:
    log = open_at(tmp_path, retention_ms=str(HOUR_MS))
    append(log, stamped(NOW_MS))
    append(log, stamped(-1))
    log.roll(NOW_MS)
    append(log, numbered(2))
    oldest = log.segments[0]
    oldest.created_ms = NOW_MS + 5 * HOUR_MS
    # An index says that the records are older than they are.
    oldest.largest_timestamp, oldest.has_confirmed_times = 5, False
    if damage:
        with oldest.path("log").open("r+b") as file:
            file.seek(len(stamped(NOW_MS)) + CRC_AT)
            file.write(bytes(4))
    assert remove_old_segments(log, NOW_MS + 2 * HOUR_MS, 10) == 0
    steps = list(confirm_times(log, NOW_MS + 2 * HOUR_MS))
    assert len(steps) >= 2 - damage
    assert oldest.has_confirmed_times
    assert oldest.is_damaged == damage
    # The timestamp of a damaged batch is unknown, so the later creation of the segment counts.
    assert remove_old_segments(log, NOW_MS + 2 * HOUR_MS, 1) == (0 if damage else 1)
    if not damage:
        assert (oldest.largest_timestamp, oldest.largest_timestamp_offset) == (NOW_MS, 0)


def test_a_segment_without_a_valid_batch_has_no_timestamp(tmp_path: Path) -> None:
    log = open_at(tmp_path, retention_ms=str(HOUR_MS))
    append(log, stamped(5))
    oldest = log.segments[0]
    oldest.has_confirmed_times = False
    with oldest.path("log").open("r+b") as file:
        file.seek(CRC_AT)
        file.write(bytes(4))
    assert len(list(confirm_times(log, NOW_MS))) == 1
    assert (oldest.largest_timestamp, oldest.largest_timestamp_offset, oldest.is_damaged) == (-1, 0, True)


def test_times_of_a_young_segment_are_not_read_without_its_index(tmp_path: Path) -> None:
    log = open_at(tmp_path, retention_ms=str(HOUR_MS))
    append(log, stamped(-1))
    oldest = log.segments[0]
    oldest.created_ms, oldest.has_confirmed_times = NOW_MS, False
    assert list(confirm_times(log, NOW_MS)) == []
    append(log, stamped(NOW_MS))
    log.roll(NOW_MS)
    oldest.path("timeindex").unlink()
    assert list(confirm_times(log, NOW_MS)) == []
    # Without a known timestamp, the batches of a sealed segment are read.
    oldest.largest_timestamp = -1
    assert len(list(confirm_times(log, NOW_MS))) == 2
    assert oldest.largest_timestamp == NOW_MS


@pytest.mark.parametrize("reason", ["empty", "confirmed", "compacted", "young"])
def test_times_are_not_read_without_need(tmp_path: Path, reason: str) -> None:
    options: dict[str, Any] = {"cleanup_policy": "compact"} if reason == "compacted" else {}
    log = open_at(tmp_path, retention_ms=str(HOUR_MS), **options)
    if reason != "empty":
        append(log, stamped(NOW_MS if reason == "young" else 1))
    log.segments[0].has_confirmed_times = reason in ("confirmed", "empty")
    assert list(confirm_times(log, NOW_MS)) == []
