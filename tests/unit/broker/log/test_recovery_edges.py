"""Recovery at the edges of segments, recovery points and epochs."""

import os
from pathlib import Path

import pytest

from headgate.broker.log import partition_log
from headgate.broker.log.recovery import LastRun
from tests.unit.broker.log.logs import CLEAN, KILLED, NOW_MS, POWER_CUT, append, assert_dense, fill, numbered, open_at

SIZE = len(numbered(0))
UNKNOWN_POINTS = LastRun(stopped_cleanly=False, same_boot=False, recovery_points_known=False)


def segments_of_two(tmp_path: Path, batches: int) -> None:
    """Write segments with two batches of one record each, and stop without a checkpoint."""
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE), index_interval_bytes="0")
    for _ in range(batches):
        append(log, numbered(log.log_end_offset))


@pytest.mark.parametrize("last_run", [CLEAN, KILLED, POWER_CUT])
@pytest.mark.parametrize("recovery_point", range(10))
def test_any_recovery_point_keeps_all_records(tmp_path: Path, last_run: LastRun, recovery_point: int) -> None:
    segments_of_two(tmp_path, 9)
    log = open_at(tmp_path, last_run, recovery_point)
    assert (log.log_start_offset, log.log_end_offset, log.flushed_offset) == (0, 9, 9)
    assert [one.base_offset for one in log.segments] == [0, 2, 4, 6, 8]
    assert log.losses == []
    assert_dense(log)


def test_a_log_that_starts_behind_the_recovery_point_is_recovered(tmp_path: Path) -> None:
    segments_of_two(tmp_path, 6)
    log = open_at(tmp_path)
    log.delete_records(5)
    again = open_at(tmp_path, KILLED, 0)
    assert (again.log_start_offset, again.log_end_offset) == (5, 6)
    assert [one.base_offset for one in again.segments] == [4]
    assert_dense(again)


@pytest.mark.parametrize("last_run", [CLEAN, KILLED])
def test_a_start_without_damage_writes_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_run: LastRun
) -> None:
    segments_of_two(tmp_path, 5)
    written: list[int] = []
    monkeypatch.setattr(partition_log, "write_manifest", lambda *_: written.append(1))
    open_at(tmp_path, last_run)
    assert written == []


@pytest.mark.parametrize(("recovery_point", "end"), [(0, 3), (3, 3), (4, 6)])
def test_a_power_cut_tears_batches_behind_the_recovery_point(tmp_path: Path, recovery_point: int, end: int) -> None:
    segments_of_two(tmp_path, 6)
    path = sorted(tmp_path.glob("*.log"))[1]
    path.write_bytes(path.read_bytes()[:SIZE] + bytes(SIZE))
    log = open_at(tmp_path, POWER_CUT, recovery_point)
    assert log.log_end_offset == end
    # Recovery does not read segments before the recovery point.
    assert log.losses == []
    assert [one.base_offset for one in log.segments] == ([0, 2, 4] if end == 6 else [0, 2])


@pytest.mark.parametrize("last_run", [CLEAN, KILLED, UNKNOWN_POINTS])
def test_without_a_power_cut_damage_costs_one_batch(tmp_path: Path, last_run: LastRun) -> None:
    segments_of_two(tmp_path, 6)
    path = sorted(tmp_path.glob("*.log"))[1]
    path.write_bytes(path.read_bytes()[:SIZE] + bytes(SIZE))
    log = open_at(tmp_path, last_run, 0)
    assert log.log_end_offset == 6
    if last_run is not CLEAN:
        assert {loss.offset for loss in log.losses} == {3}
        assert log.segments[1].is_damaged
        assert [one.is_damaged for one in (log.segments[0], log.segments[2])] == [False, False]


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_epochs_behind_a_cut_are_forgotten(tmp_path: Path, cut: int) -> None:
    log = open_at(tmp_path, leader_epoch=1)
    for epoch in (1, 3, 5):
        log.leader_epoch = epoch
        fill(log, 1)
    log.checkpoint()
    path = log.segments[0].path("log")
    sizes = [header.size_bytes for _, _, header in log.batches_from(0)]
    path.write_bytes(path.read_bytes()[: sum(sizes[:cut])])
    again = open_at(tmp_path, POWER_CUT, leader_epoch=6)
    assert again.log_end_offset == 3 * cut
    assert again.epochs == [(1, 0), (3, 3), (5, 6)][:cut]


def test_epochs_that_are_missing_from_the_file_come_from_the_batches(tmp_path: Path) -> None:
    log = open_at(tmp_path, leader_epoch=1)
    for epoch in (1, 1, 4):
        log.leader_epoch = epoch
        fill(log, 1)
    assert open_at(tmp_path, KILLED, leader_epoch=4).epochs == [(1, 0), (4, 6)]
    # The checksum does not cover the epoch: one after the current epoch is damage.
    assert open_at(tmp_path, KILLED, leader_epoch=3).epochs == [(1, 0)]


@pytest.mark.parametrize(("recovery_point", "lost"), [(8, False), (9, False), (10, True)])
def test_a_log_that_ends_before_its_recovery_point_lost_records(
    tmp_path: Path, recovery_point: int, lost: bool
) -> None:
    segments_of_two(tmp_path, 9)
    log = open_at(tmp_path, KILLED, recovery_point)
    assert log.log_end_offset == max(9, recovery_point)
    assert bool(log.losses) is lost
    assert len(log.segments) == (6 if lost else 5)
    append(log, numbered(log.log_end_offset))
    assert log.log_end_offset == max(9, recovery_point) + 1


def test_missing_records_at_the_start_move_the_log_start_offset(tmp_path: Path) -> None:
    segments_of_two(tmp_path, 5)
    min(tmp_path.glob("*.log")).unlink()
    log = open_at(tmp_path, KILLED)
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    assert log.losses[0].offset == 0
    assert "before offset 2 are missing" in log.losses[0].description
    assert_dense(log)


def test_a_segment_file_without_a_time_counts_as_new(tmp_path: Path) -> None:
    segments_of_two(tmp_path, 3)
    first, second = sorted(tmp_path.glob("*.log"))
    os.utime(first, (5, 5))
    os.utime(second, (0, 0))
    log = open_at(tmp_path)
    assert [one.created_ms for one in log.segments] == [5000, NOW_MS]


@pytest.mark.parametrize(("stored", "start"), [(b"2", 2), (b"3", 3), (b"4", 0)])
def test_a_start_offset_without_a_checksum_is_used_if_the_log_contains_it(
    tmp_path: Path, stored: bytes, start: int
) -> None:
    segments_of_two(tmp_path, 3)
    (tmp_path / "log-start-offset").write_bytes(stored)
    log = open_at(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (start, 3)
    assert [loss.offset for loss in log.losses][:1] == ([] if start else [0])


def test_a_damaged_manifest_of_an_empty_log_uses_no_offset(tmp_path: Path) -> None:
    open_at(tmp_path).close()
    for path in tmp_path.iterdir():
        if path.name != "segments":
            path.unlink()
    (tmp_path / "segments").write_bytes(b"damaged")
    log = open_at(tmp_path)
    assert (log.log_start_offset, log.log_end_offset, log.losses) == (0, 0, [])
