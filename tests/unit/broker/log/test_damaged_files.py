"""Bit flips in, and loss of, the small files that control deletion and identity."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked
from headgate.broker.log.directory import DataDirectory, Owner
from headgate.broker.log.identity import read_identity
from headgate.broker.log.log_deletion import confirm_times
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.recovery import LastRun
from headgate.wire.record_batch import read_header
from tests.unit.broker.log.logs import (
    CLEAN,
    KILLED,
    NOW_MS,
    POWER_CUT,
    append,
    assert_dense,
    fill,
    numbered,
    open_at,
    readable_offsets,
    values_from,
)

UNKNOWN_POINTS = LastRun(stopped_cleanly=False, same_boot=False, recovery_points_known=False)


def at_once(write: Callable[[], object]) -> None:
    write()


def flips(content: bytes) -> list[bytes]:
    """Return the content with each bit flipped in turn, and truncated to each length."""
    flipped = []
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        flipped.append(bytes(damaged))
    return flipped + [content[:length] for length in range(1, len(content))]


def test_no_flipped_bit_of_a_checked_file_passes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_checked(path, b"100")
    content = path.read_bytes()
    stored = read_checked(path)
    assert stored is not None
    assert stored == (b"100", True)
    for damaged in flips(content):
        path.write_bytes(damaged)
        try:
            stored = read_checked(path)
        except DamagedFile:
            continue
        # The first line is damaged. The file reads as one without a checksum, but its content is not a valid number.
        assert stored is not None
        assert not stored.is_checked
        assert not stored.content.strip().isdigit()


def test_a_damaged_log_start_offset_deletes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    original = tmp_path / "original"
    log = open_at(original, internal_segment_bytes="2000")
    fill(log, 100)
    log.delete_records(151)
    log.close()
    content = (original / "log-start-offset").read_bytes()
    first = min(int(path.stem) for path in original.glob("*.log"))
    randomness = random.Random(5)
    for number, damaged in enumerate([b"", b"900", *randomness.sample(flips(content), 40)]):
        directory = shutil.copytree(original, tmp_path / str(number))
        (directory / "log-start-offset").write_bytes(damaged)
        caplog.clear()
        again = open_at(directory, [CLEAN, KILLED, POWER_CUT][number % 3], recovery_point=300)
        assert again.log_end_offset == 300
        assert again.log_start_offset == first
        assert_dense(again)
        assert "log-start-offset" in caplog.text


@pytest.mark.parametrize("recovery_point", [0, 300])
def test_an_empty_log_whose_start_offset_is_damaged_uses_no_offset_twice(tmp_path: Path, recovery_point: int) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000", retention_ms="1000")
    fill(log, 100)
    log.apply_retention(2**50)
    log.close()
    assert log.log_start_offset == 300
    (tmp_path / "log-start-offset").write_bytes(b"headgate-crc32c 00000000\n300")
    again = open_at(tmp_path, recovery_point=recovery_point)
    assert append(again, numbered(300)) == 300


def test_a_log_start_offset_of_an_earlier_version_is_read_and_gets_a_checksum(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 10)
    log.delete_records(4)
    log.close()
    (tmp_path / "log-start-offset").write_bytes(b"4")
    assert open_at(tmp_path).log_start_offset == 4
    stored = read_checked(tmp_path / "log-start-offset")
    assert stored is not None
    assert stored == (b"4", True)


def test_without_recovery_points_a_damaged_batch_costs_no_other_after_a_power_cut(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 60)
    log.close()
    path = sorted(tmp_path.glob("*.log"))[2]
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    log = open_at(tmp_path, UNKNOWN_POINTS)
    assert log.log_end_offset == 180
    assert len(readable_offsets(log)) == 177


@pytest.mark.parametrize("last_run", [CLEAN, KILLED, POWER_CUT])
def test_a_last_batch_that_was_on_the_disk_is_not_cut_off(tmp_path: Path, last_run: LastRun) -> None:
    log = open_at(tmp_path)
    fill(log, 5)
    log.close()
    (path,) = tmp_path.glob("*.log")
    data = bytearray(path.read_bytes())
    size = len(data) // 5
    data[4 * size + 8 : 4 * size + 12] = b"\x7f\xff\xff\xff"  # length of the last batch
    path.write_bytes(data)
    log = open_at(tmp_path, last_run, recovery_point=15)
    assert path.stat().st_size == len(data)
    assert log.losses
    assert append(log, numbered(15)) == 15
    assert readable_offsets(log) == set(range(12)) | {15}
    log.close()
    again = open_at(tmp_path, last_run, recovery_point=16)
    assert readable_offsets(again) == set(range(12)) | {15}


def test_a_truncated_log_uses_no_offset_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_at(tmp_path)
    fill(log, 5)
    log.close()
    (path,) = tmp_path.glob("*.log")
    with path.open("r+b") as file:
        file.truncate(read_header(path.read_bytes()).size_bytes * 2)
    log = open_at(tmp_path, recovery_point=15)
    assert append(log, numbered(15)) == 15
    assert [offset for offset, _ in values_from(log, 0)] == [*range(6), 15]
    assert "from offset 6 on" in caplog.text


@pytest.mark.parametrize("last_run", [KILLED, POWER_CUT])
def test_removed_segments_that_a_power_cut_brings_back_cost_nothing(tmp_path: Path, last_run: LastRun) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 60)
    first = sorted(tmp_path.glob("*.log"))[0]
    kept = first.read_bytes()
    log.delete_records(100)
    log.close()
    assert not first.exists()
    first.write_bytes(kept)
    again = open_at(tmp_path, last_run)
    assert (again.log_start_offset, again.log_end_offset) == (100, 180)
    assert_dense(again)
    assert not first.exists()


@pytest.mark.parametrize("victim", ["meta.json", "meta.copy.json"])
@pytest.mark.parametrize("harm", ["deleted", "flipped", "empty", "of another shape"])
def test_the_identity_survives_the_loss_of_one_file(tmp_path: Path, victim: str, harm: str) -> None:
    for _ in range(3):
        identity = read_identity(tmp_path, [], stopped_cleanly=False, store=at_once)
    assert identity.unclean_starts == 2
    path = tmp_path / victim
    content = path.read_bytes()
    match harm:
        case "deleted":
            path.unlink()
        case "flipped":
            path.write_bytes(content.replace(b"unclean", b"enclean"))
        case "empty":
            path.write_bytes(b"")
        case "of another shape":
            path.write_bytes(b'{"cluster_id": 5}')
    assert read_identity(tmp_path, [], stopped_cleanly=True, store=at_once) == identity
    assert (tmp_path / "meta.json").read_bytes() == (tmp_path / "meta.copy.json").read_bytes() == content


def test_a_lost_identity_is_logged_and_the_leader_epoch_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partition = tmp_path / "t-0"
    log = open_at(partition, leader_epoch=7)
    fill(log, 2)
    log.close()
    identity = read_identity(tmp_path, [partition], stopped_cleanly=True, store=at_once)
    assert identity.unclean_starts > 7
    assert identity.cluster_id in caplog.text


def test_an_identity_of_an_earlier_version_is_kept(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"cluster_id": "abc", "unclean_starts": 3, "version": 1}))
    assert read_identity(tmp_path, [], stopped_cleanly=True, store=at_once) == ("abc", 3)


def left(path: Path, *, clean: bool = True, boot_id: str = "a" * 8) -> DataDirectory:
    directory = DataDirectory(path, boot_id)
    directory.open()
    directory.write_recovery_points({"t-0": 5})
    directory.write_recovery_points({"t-0": 10})
    directory.close(clean=clean)
    return directory


def opened(path: Path, boot_id: str = "a" * 8) -> DataDirectory:
    directory = DataDirectory(path, boot_id)
    directory.open()
    directory.close(clean=False)
    return directory


@pytest.mark.parametrize("harm", ["flipped", "deleted", "empty"])
def test_damaged_recovery_points_are_replaced_by_the_version_before(tmp_path: Path, harm: str) -> None:
    left(tmp_path)
    path = tmp_path / "recovery-points"
    if harm == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"10", b"90") if harm == "flipped" else b"")
    directory = opened(tmp_path)
    assert directory.recovery_points == {"t-0": 5}
    assert not directory.last_run.recovery_points_known
    assert opened(tmp_path).last_run.recovery_points_known


def test_a_damaged_boot_id_or_marker_is_not_believed(tmp_path: Path) -> None:
    left(tmp_path)
    marker = tmp_path / "clean-shutdown"
    marker.write_bytes(bytes(len(marker.read_bytes())))
    assert not opened(tmp_path).last_run.stopped_cleanly
    boot_id = tmp_path / "boot-id"
    boot_id.write_bytes(boot_id.read_bytes()[:-1] + b"b")
    assert opened(tmp_path, "other boot").last_run.same_boot
    assert not opened(tmp_path, "third boot").last_run.same_boot


def test_files_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    boot = "01234567-89ab-cdef-0123-456789abcdef"
    (tmp_path / "clean-shutdown").write_bytes(b"")
    (tmp_path / "boot-id").write_text(boot)
    (tmp_path / "recovery-points").write_text('{"t-0": 7}')
    directory = opened(tmp_path, boot)
    assert directory.last_run == LastRun(stopped_cleanly=True, same_boot=True, recovery_points_known=False)
    assert directory.recovery_points == {"t-0": 7}


def confirmed_retention(log: PartitionLog, now_ms: int) -> int:
    for _ in confirm_times(log, now_ms):
        pass
    return log.apply_retention(now_ms)


@pytest.mark.parametrize("manifest", ["kept", "lost"])
def test_a_damaged_time_index_deletes_nothing(tmp_path: Path, manifest: str) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000", index_interval_bytes="150")
    fill(log, 100)
    log.close()
    if manifest == "lost":
        (tmp_path / "segments").unlink()
    for path in tmp_path.glob("*.timeindex"):
        # Move the last entry ten years into the past.
        content = path.read_bytes()
        timestamp = int.from_bytes(content[-12:-4]) - 10 * 365 * 86_400_000
        path.write_bytes(timestamp.to_bytes(8) + content[-4:])
    log = open_at(tmp_path, retention_ms="3600000")
    assert confirmed_retention(log, NOW_MS) == 0
    assert log.log_start_offset == 0
    assert confirmed_retention(log, NOW_MS + 7_200_000) > 0


def test_a_missing_segment_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 100)
    log.close()
    missing = sorted(tmp_path.glob("*.log"))[2]
    missing.unlink()
    log = open_at(tmp_path)
    assert [loss.offset for loss in log.losses] == [int(missing.stem)]
    assert f"from offset {int(missing.stem)} on" in caplog.text
    assert log.log_end_offset == 300


@pytest.mark.parametrize("batches", [1, 5])
def test_the_only_segment_is_reported_missing_before_the_first_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, batches: int
) -> None:
    log = open_at(tmp_path)
    fill(log, batches)
    (tmp_path / f"{0:020d}.log").unlink()
    log = open_at(tmp_path, KILLED)
    assert [loss.offset for loss in log.losses] == [0]
    assert "from offset 0 on: the segment with the records before offset 3 is missing" in caplog.text
    assert log.log_start_offset == log.log_end_offset == 3
    fill(log, 1)
    assert [offset for offset, _ in values_from(log, 3)] == [3, 4, 5]


def test_the_last_segment_is_reported_missing_before_its_first_checkpoint(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 100)
    last = sorted(tmp_path.glob("*.log"))[-1]
    base_offset = int(last.stem)
    assert log.log_end_offset > base_offset > 0
    last.unlink()
    log = open_at(tmp_path, KILLED)
    assert {loss.offset for loss in log.losses} == {base_offset}
    # The first batch of the lost segment is known, so the log does not reuse its offsets.
    assert log.log_end_offset == base_offset + 3
    assert readable_offsets(log) == set(range(base_offset))


def test_a_new_segment_that_is_lost_in_a_power_cut_is_no_loss(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 5)
    (tmp_path / f"{0:020d}.log").unlink()
    log = open_at(tmp_path, POWER_CUT)
    assert log.losses == []
    assert log.log_end_offset == 0


def test_a_log_without_records_misses_no_segment(tmp_path: Path) -> None:
    open_at(tmp_path)
    assert open_at(tmp_path, KILLED).losses == []


def test_segments_behind_a_cut_are_not_missing_at_the_next_start(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 100)
    segments = sorted(tmp_path.glob("*.log"))
    cut = segments[len(segments) // 2]
    cut.write_bytes(bytes(cut.stat().st_size))
    log = open_at(tmp_path, POWER_CUT)
    assert log.log_end_offset == int(cut.stem)
    assert open_at(tmp_path, KILLED).losses == []


@pytest.mark.parametrize(("mode", "warns"), [(0o700, False), (0o750, True), (0o701, True)])
def test_a_data_directory_that_other_users_can_access_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warns: bool
) -> None:
    tmp_path.chmod(mode)
    opened(tmp_path)
    assert ("Other users can access" in caplog.text) == warns


@pytest.mark.parametrize(
    ("name", "note", "expected"),
    [
        ("t-3", {"topic": "t", "topic_id": str(UUID(int=7))}, Owner("t", UUID(int=7), 3)),
        ("a-b-12", {"topic": "a-b", "topic_id": str(UUID(int=7))}, Owner("a-b", UUID(int=7), 12)),
        ("t-3", {"topic": "other", "topic_id": str(UUID(int=7))}, None),
        ("t-3", {"topic": "t", "topic_id": 7}, None),
        ("t-3", {"topic": "t", "topic_id": "7"}, None),
        ("t-3", {"topic": 5, "topic_id": str(UUID(int=7))}, None),
        ("t-3", {"topic": "t"}, None),
        ("t-x", {"topic": "t", "topic_id": str(UUID(int=7))}, None),
        ("t-3", ["t"], None),
    ],
)
def test_the_note_of_a_directory_names_its_own_partition(
    tmp_path: Path, name: str, note: object, expected: Owner | None
) -> None:
    path = tmp_path / name
    path.mkdir()
    directory = DataDirectory(tmp_path, "a" * 8)
    assert directory.owner(path) is None
    write_checked(path / "partition.metadata", json.dumps(note).encode())
    if expected is None:
        with pytest.raises(DamagedFile):
            directory.owner(path)
    else:
        assert directory.owner(path) == expected
