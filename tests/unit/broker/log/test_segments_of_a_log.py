"""Segments of a log: rolls, sealed segments that stay open, unflushed segments."""

import errno
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.log import files, partition_log
from headgate.broker.log.segment import Segment
from headgate.broker.runtime.errors import StorageError
from headgate.wire.record_batch import read_header
from tests.unit.broker.log.logs import NOW_MS, append, numbered, open_at, stamped
from tests.wire.record_batches import Batch, NewRecord

SIZE = len(numbered(0))


@pytest.mark.parametrize(
    ("configs", "limit", "segments"),
    [
        ({"internal_segment_bytes": str(2 * SIZE)}, None, [0, 2, 4]),
        ({"internal_segment_bytes": str(2 * SIZE - 1)}, None, [0, 1, 2, 3, 4]),
        ({"index_interval_bytes": "0", "segment_index_bytes": "16"}, None, [0, 3]),
        ({"index_interval_bytes": "0", "segment_index_bytes": "15"}, None, [0, 2, 4]),
        ({}, 2, [0, 3]),
        ({}, 4, [0]),
        ({}, 3, [0, 4]),
    ],
)
def test_a_full_segment_is_rolled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    configs: dict[str, Any],
    limit: int | None,
    segments: list[int],
) -> None:
    if limit is not None:
        monkeypatch.setattr(partition_log, "relative_offset_max", limit)
    log = open_at(tmp_path, **configs)
    for _ in range(5):
        append(log, numbered(log.log_end_offset))
    assert [one.base_offset for one in log.segments] == segments


@pytest.mark.parametrize(
    ("first", "second", "age_ms", "is_rolled"),
    [
        (0, 1000, 0, False),
        (0, 1001, 0, True),
        # Without a timestamp, the age of the segment counts.
        (-1, 5000, 1000, False),
        (-1, 5000, 1001, True),
        (5000, -1, 1000, False),
        (5000, -1, 1001, True),
        (5000, 6000, 9000, False),
    ],
)
def test_a_segment_is_rolled_by_time(tmp_path: Path, first: int, second: int, age_ms: int, is_rolled: bool) -> None:
    log = open_at(tmp_path, segment_ms="1000")
    append(log, stamped(first))
    log.segments[0].created_ms = NOW_MS - age_ms
    append(log, stamped(second))
    assert len(log.segments) == (2 if is_rolled else 1)


def test_the_first_batch_of_a_segment_may_have_any_size(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="100", segment_ms="1")
    append(log, Batch([NewRecord(bytes(5000), timestamp=1)]).encode())
    assert len(log.segments) == 1


def test_whether_more_batches_follow_a_region(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE))
    for _ in range(4):
        append(log, numbered(log.log_end_offset))

    def more_after(offset: int, batches: int) -> bool:
        region = log.read(offset, batches * SIZE, at_least_one=True)
        assert region is not None
        return log.has_more(region)

    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    assert [more_after(0, 2), more_after(2, 2)] == [True, False]
    log.roll(NOW_MS)
    # The last segment is empty.
    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    log.append(numbered(4), read_header(numbered(4)), NOW_MS, awaits_flush=True)
    # The batch in the last segment is hidden.
    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    assert log.note_flushed(5) == SIZE
    assert [more_after(offset, 1) for offset in range(5)] == [True, True, True, True, False]


def test_a_few_sealed_segments_stay_open_after_a_read(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE))
    for _ in range(10):
        append(log, numbered(log.log_end_offset))
    for one in log.segments[:-1]:
        one.forget()
    for offset in (0, 2, 4, 2, 6, 4, 8):
        log.read(offset, 1, at_least_one=True)
    # The last segment is always open and does not count.
    assert [one.base_offset for one in log.segments if one._index is not None] == [4, 6, 8]
    log.delete_records(6)
    log.read(6, 1, at_least_one=True)
    assert [one.base_offset for one in log._open_sealed] == [6]
    assert log._base_offsets == [one.base_offset for one in log.segments] == [6, 8]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_segment_is_rolled_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(*_: object) -> None:
        raise StorageError("no", number)

    log = open_at(tmp_path)
    append(log, numbered(0))
    monkeypatch.setattr(partition_log, "write_snapshot", fails)
    if number == errno.EIO:
        with pytest.raises(StorageError):
            log.roll(NOW_MS)
        assert log.failure is not None
    else:
        assert log.roll(NOW_MS).base_offset == 1
        assert log.failure is None
    assert len(log.segments) == (1 if number == errno.EIO else 2)


def test_unflushed_segments_start_at_the_flushed_offset(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE), index_interval_bytes="0")
    for _ in range(5):
        append(log, numbered(log.log_end_offset))
    starts = {}
    for flushed in range(6):
        log.flushed_offset = flushed
        starts[flushed] = [(one.base_offset, position) for one, position in log.unflushed_ranges()]
        assert [file.path.name for file in log.unflushed_files()] == [f"{base:020d}.log" for base, _ in starts[flushed]]
    assert starts == {
        0: [(0, 0), (2, 0), (4, 0)],
        1: [(0, SIZE), (2, 0), (4, 0)],
        2: [(2, 0), (4, 0)],
        3: [(2, SIZE), (4, 0)],
        4: [(4, 0)],
        5: [(4, 0)],
    }


def test_only_records_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    log = open_at(tmp_path)
    append(log, numbered(0))
    monkeypatch.setattr(files, "sync_file_and_metadata", lambda number: synced.append("file"))
    monkeypatch.setattr(files, "sync_directory", lambda path: synced.append("directory"))
    # Recovery can rebuild the indexes, snapshots and the manifest.
    log.roll(NOW_MS)
    append(log, numbered(1))
    assert synced == []
    log.segments[0].file.sync()
    log.segments[0].file.sync()
    assert synced == ["directory"]
    other = Segment(tmp_path, 0, NOW_MS, SIZE)
    other.file.sync()
    assert synced == ["directory"]
