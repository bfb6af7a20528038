"""Lookups by timestamp: limits of the event loop and of threads, wrong headers, hidden records."""

from pathlib import Path
from typing import Any

import pytest

from headgate.broker.log import time_search
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.time_search import (
    BatchSearch,
    Searched,
    UnsearchedBatch,
    batch_as_a_whole,
    first_at,
    misleading_batches_max,
)
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import read_header
from tests.unit.broker.log.logs import NOW_MS, append, open_at, stamped


def filled(tmp_path: Path, *batches: bytes, **configs: Any) -> PartitionLog:
    log = open_at(tmp_path, **configs)
    for batch in batches:
        log.append(batch, read_header(batch), NOW_MS)
    return log


@pytest.mark.parametrize(
    ("timestamp", "offset_min", "found"),
    [
        (0, 0, (10, 5)),
        (5, 0, (10, 5)),
        (6, 0, (11, 9)),
        (9, 0, (11, 9)),
        (5, 11, (11, 9)),
        (0, 12, (12, 7)),
        (8, 12, None),
        (10, 0, None),
        (0, 13, None),
    ],
)
def test_the_first_record_at_or_after_the_timestamp_and_the_offset(
    timestamp: int, offset_min: int, found: tuple[int, int] | None
) -> None:
    batch = stamped(5, 9, 7, base_offset=10)
    assert first_at(batch, read_header(batch), timestamp, offset_min) == found


@pytest.mark.parametrize(("offset_min", "found"), [(0, (10, 9)), (10, (10, 9)), (12, (12, 9))])
def test_a_batch_that_is_not_searched_counts_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, offset_min: int, found: tuple[int, int]
) -> None:
    batch = stamped(5, 9, 7, base_offset=10)
    header = read_header(batch)
    assert batch_as_a_whole(header, offset_min) == found
    invalid = batch[:-3]
    assert first_at(invalid, header, 100, offset_min) == found
    assert first_at(batch, header, 100, offset_min) is None
    monkeypatch.setattr(time_search, "searched_records_max", 3)
    assert first_at(batch, header, 6, 0) == (11, 9)
    monkeypatch.setattr(time_search, "searched_records_max", 2)
    assert first_at(batch, header, 6, offset_min) == found


def test_the_limits_of_the_event_loop_are_inclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = stamped(5, 9, 7)
    log = filled(tmp_path, batch)
    search = BatchSearch(log.segments[0].file, 0, read_header(batch), 6, 0)
    monkeypatch.setattr(time_search, "inline_records_max", 3)
    monkeypatch.setattr(time_search, "inline_bytes_max", len(batch))
    assert search.run_inline() == (1, 9)
    for name, limit in (("inline_records_max", 2), ("inline_bytes_max", len(batch) - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(time_search, name, limit)
            with pytest.raises(InvalidBatch, match="too large"):
                search.run_inline()
    assert search.run() == (1, 9)


def test_a_batch_that_cannot_be_read_counts_as_a_whole(tmp_path: Path) -> None:
    batch = stamped(5, 9, 7)
    log = filled(tmp_path, batch)
    search = BatchSearch(log.segments[0].file, 0, read_header(batch), 6, 0)
    log.close()
    log.segments[0].path("log").unlink()
    assert search.run() == (0, 9)


def test_large_batches_are_searched_by_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_search, "inline_records_max", 1)
    log = filled(tmp_path, stamped(5, 9, 7))
    searched: Searched = {}
    with pytest.raises(UnsearchedBatch, match="offset 0") as caught:
        log.offset_for_timestamp(6, searched=searched)
    searched[caught.value.search] = caught.value.search.run()
    assert log.offset_for_timestamp(6, searched=searched) == (1, 9)
    # After too many searches, the batch counts as a whole.
    monkeypatch.setattr(time_search, "searches_max", 1)
    assert log.offset_for_timestamp(5, searched=searched) == (0, 9)
    monkeypatch.setattr(time_search, "searches_max", 2)
    with pytest.raises(UnsearchedBatch):
        log.offset_for_timestamp(5, searched=searched)
    # Without `searched`, the caller may wait.
    assert log.offset_for_timestamp(5) == (0, 5)


@pytest.mark.parametrize("liars", [0, misleading_batches_max - 1, misleading_batches_max, misleading_batches_max + 1])
def test_only_a_few_wrong_headers_are_followed(tmp_path: Path, liars: int) -> None:
    lies = [stamped(1, 2, max_timestamp=100)] * liars
    log = filled(tmp_path, *lies, stamped(40, 60, max_timestamp=100))
    expected = 2 * liars + 1 if liars < misleading_batches_max else 2 * misleading_batches_max
    assert log.offset_for_timestamp(50) == (expected, 60 if liars < misleading_batches_max else 100)


def test_a_wrong_header_without_a_record_finds_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path, stamped(1, 2, max_timestamp=100))
    assert log.offset_for_timestamp(50) is None
    # The header has the largest timestamp of the log, so its batch counts as a whole.
    assert log.offset_of_largest_timestamp() == (0, 100)


@pytest.mark.parametrize("wait", [True, False])
def test_segments_before_the_timestamp_are_skipped(tmp_path: Path, wait: bool) -> None:
    log = open_at(tmp_path)
    for timestamps in ((10, 20), (15, 18), (30,), (25,)):
        append(log, stamped(*timestamps))
        log.roll(NOW_MS)
    log.close()
    log = open_at(tmp_path)
    searched: Searched | None = None if wait else {}

    def found(timestamp: int) -> Any:
        return log.offset_for_timestamp(timestamp, wait=wait, searched=searched)

    assert [found(timestamp) for timestamp in (0, 11, 20, 21, 30)] == [(0, 10), (1, 20), (1, 20), (4, 30), (4, 30)]
    assert found(31) is None
    assert log.offset_of_largest_timestamp(wait=wait, searched=searched) == (4, 30)
    log.delete_records(5)
    assert found(0) == (5, 25)
    assert log.offset_of_largest_timestamp(wait=wait, searched=searched) == (5, 25)


def test_deleted_records_are_not_found(tmp_path: Path) -> None:
    log = filled(tmp_path, stamped(10, 30, 20))
    log.delete_records(2)
    assert log.offset_for_timestamp(0) == (2, 20)
    assert log.offset_for_timestamp(25) is None
    assert log.offset_of_largest_timestamp() == (2, 30)


@pytest.mark.parametrize("wait", [True, False])
def test_hidden_records_are_not_found(tmp_path: Path, wait: bool) -> None:
    log = filled(tmp_path, stamped(10), stamped(30), stamped(20), index_interval_bytes="0")
    for timestamp in (40, 50):
        batch = stamped(timestamp)
        log.append(batch, read_header(batch), NOW_MS, awaits_flush=True)
    assert log.high_watermark == 3
    assert log.offset_for_timestamp(35, wait=wait) is None
    assert log.offset_for_timestamp(25, wait=wait) == (1, 30)
    assert log.offset_of_largest_timestamp(wait=wait) == (1, 30)
    log.note_flushed(4)
    assert log.offset_for_timestamp(35, wait=wait) == (3, 40)
    assert log.offset_of_largest_timestamp(wait=wait) == (3, 40)


def test_a_log_without_visible_timestamps_has_no_largest_one(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    assert log.offset_of_largest_timestamp() is None
    batch = stamped(40)
    log.append(batch, read_header(batch), NOW_MS, awaits_flush=True)
    assert log.offset_of_largest_timestamp() is None
    other = filled(tmp_path / "other", stamped(-1))
    assert other.offset_of_largest_timestamp() is None
    zero = filled(tmp_path / "zero", stamped(-1), stamped(0), stamped(0))
    assert zero.offset_of_largest_timestamp() == (1, 0)
