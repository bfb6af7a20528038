"""Log recovery after a crash, a power cut or bit rot."""

import random
import shutil
from pathlib import Path

import pytest

from headgate.broker.log.recovery import LastRun
from headgate.wire.errors import CorruptBatch
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
from tests.wire.record_batches import Batch, NewRecord

ALL_RUNS = [CLEAN, KILLED, POWER_CUT]


def segment_file(directory: Path, number: int = -1) -> Path:
    return sorted(directory.glob("*.log"))[number]


def boundaries(path: Path) -> list[int]:
    """Return the end position of each batch of a segment."""
    data, position, ends = path.read_bytes(), 0, []
    while position < len(data):
        position += read_header(data, position).size_bytes
        ends.append(position)
    return ends


@pytest.mark.parametrize("last_run", ALL_RUNS)
def test_a_tail_cut_at_any_byte_keeps_every_whole_batch(tmp_path: Path, last_run: LastRun) -> None:
    original = tmp_path / "original"
    log = open_at(original)
    fill(log, 6)
    log.close()
    path = segment_file(original)
    ends = boundaries(path)
    size = path.stat().st_size
    for cut in range(ends[-3], size):
        directory = tmp_path / f"cut-{cut}"
        shutil.copytree(original, directory)
        with segment_file(directory).open("r+b") as file:
            file.truncate(cut)
        log = open_at(directory, last_run)
        whole = sum(end <= cut for end in ends)
        assert log.log_end_offset == whole * 3, cut
        assert append(log, numbered(log.log_end_offset, 3)) == whole * 3
        assert_dense(log)
        log.close()
        assert_dense(open_at(directory, KILLED))
        shutil.rmtree(directory)


@pytest.mark.parametrize("last_run", ALL_RUNS)
@pytest.mark.parametrize("tail", [b"\x00" * 5000, b"garbage" * 500, b"\xff" * 61, b"\x00" * 7])
def test_garbage_behind_the_log_is_cut_off(tmp_path: Path, last_run: LastRun, tail: bytes) -> None:
    log = open_at(tmp_path)
    fill(log, 20)
    log.close()
    with segment_file(tmp_path).open("ab") as file:
        file.write(tail)
    log = open_at(tmp_path, last_run)
    assert log.log_end_offset == 60
    fill(log, 1)
    assert_dense(log)


@pytest.mark.parametrize("last_run", [CLEAN, KILLED])
@pytest.mark.parametrize("byte", [0, 3, 8, 11, 12, 16, 17, 22, 26, 40, 60, 62, 70])
def test_a_flipped_bit_costs_its_batch_and_no_other(tmp_path: Path, last_run: LastRun, byte: int) -> None:
    log = open_at(tmp_path, index_interval_bytes="300")
    fill(log, 40)
    log.close()
    path = segment_file(tmp_path)
    data = bytearray(path.read_bytes())
    start = boundaries(path)[19]
    for bit in (0, 7):
        damaged = bytearray(data)
        damaged[start + byte] ^= 1 << bit
        path.write_bytes(damaged)
        log = open_at(tmp_path, last_run)
        assert log.log_end_offset == 120
        readable = readable_offsets(log)
        if 12 <= byte < 16:
            # The checksum does not cover the leader epoch, and no consumer needs it.
            assert readable == set(range(120))
            continue
        assert readable == set(range(120)) - {60, 61, 62}
        for offset in (60, 61, 62):
            with pytest.raises(CorruptBatch):
                log.read(offset, 1000, at_least_one=True)
        assert append(log, numbered(120)) == 120
        assert values_from(log, 63)[-1] == (120, b"120")
        log.segments[-1].truncate(len(data), 120)


def test_a_flipped_bit_in_the_last_batch_is_rot_and_not_a_torn_tail(tmp_path: Path) -> None:
    original = tmp_path / "original"
    log = open_at(original)
    fill(log, 5)
    log.close()
    content = segment_file(original).read_bytes()
    last = boundaries(segment_file(original))[3]
    for place in range(last, len(content)):
        directory = shutil.copytree(original, tmp_path / str(place))
        data = bytearray(content)
        data[place] ^= 1 << place % 7
        segment_file(directory).write_bytes(data)
        log = open_at(directory, KILLED)
        assert log.log_end_offset >= 15, place
        # The checksum does not cover the leader epoch. The broker sets it and does not use this copy.
        if not last + 12 <= place < last + 16:
            with pytest.raises(CorruptBatch):
                log.read(12, 1000, at_least_one=True)
        assert log.epoch_of(14) == 0, place
        end = log.log_end_offset
        assert append(log, numbered(end)) == end
        assert values_from(log, end) == [(end, str(end).encode())]


def test_after_a_power_cut_synced_records_are_kept_and_others_may_be_lost(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 10)
    log.close()
    path = segment_file(tmp_path)
    ends = boundaries(path)
    data = bytearray(path.read_bytes())
    data[ends[6] + 70] ^= 1  # only the eighth batch is incomplete on disk
    path.write_bytes(data)
    log = open_at(tmp_path, POWER_CUT, recovery_point=15)
    assert log.log_end_offset == 21
    fill(log, 4)
    assert_dense(log)


def test_a_power_cut_leaves_damage_before_the_recovery_point_where_it_is(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="1200")
    fill(log, 30)
    log.close()
    for path in sorted(tmp_path.glob("*.log"))[1:2]:
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)
    log = open_at(tmp_path, POWER_CUT, recovery_point=81)
    assert log.log_end_offset == 90
    assert len(readable_offsets(log)) == 87


@pytest.mark.parametrize("last_run", ALL_RUNS)
@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
@pytest.mark.parametrize("harm", ["deleted", "empty", "garbage", "zeros", "halved"])
def test_harmed_side_files_are_rebuilt(tmp_path: Path, last_run: LastRun, suffix: str, harm: str) -> None:
    log = open_at(tmp_path, internal_segment_bytes="3000", index_interval_bytes="150")
    for _ in range(60):
        first = log.log_end_offset
        append(log, numbered(first, 3, producer_id=9, producer_epoch=0, base_sequence=first))
    log.close()
    randomness = random.Random(7)
    paths = list(tmp_path.glob(f"*.{suffix}"))
    assert paths
    for path in paths:
        content = path.read_bytes()
        match harm:
            case "deleted":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "garbage":
                path.write_bytes(randomness.randbytes(max(len(content), 24)))
            case "zeros":
                path.write_bytes(bytes(max(len(content), 24)))
            case "halved":
                path.write_bytes(content[: len(content) // 2])
    log = open_at(tmp_path, last_run)
    assert log.log_end_offset == 180
    assert_dense(log)
    for offset in range(180):
        assert values_from(log, offset, 200)[0][0] == offset
    for offset in (0, 89, 179):
        found = log.offset_for_timestamp(1_700_000_000_000 + offset)
        assert found is not None
        assert found[0] == offset
    assert [mark.base_offset for mark in log.producers.by_id[9].batches] == [165, 168, 171, 174, 177]


@pytest.mark.parametrize("last_run", ALL_RUNS)
def test_every_other_small_file_may_be_missing(tmp_path: Path, last_run: LastRun) -> None:
    log = open_at(tmp_path, internal_segment_bytes="3000")
    fill(log, 60)
    log.close()
    for path in tmp_path.iterdir():
        if path.suffix != ".log":
            path.unlink()
    log = open_at(tmp_path, last_run)
    assert_dense(log)


def test_leftovers_of_an_interrupted_rewrite_are_removed(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 2)
    log.close()
    for name in ("00000000000000000000.index.tmp", "00000000000000000003.log.deleted", "00000000000000000000.log.swap"):
        (tmp_path / name).write_bytes(b"half")
    log = open_at(tmp_path, KILLED)
    assert_dense(log)
    assert not list(tmp_path.glob("*.tmp")) + list(tmp_path.glob("*.deleted")) + list(tmp_path.glob("*.swap"))


def test_an_idempotent_producers_window_survives_a_crash(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for sequence in range(8):
        append(log, numbered(sequence, 1, producer_id=4, producer_epoch=1, base_sequence=sequence))
    del log
    again = open_at(tmp_path, KILLED)
    repeated = read_header(numbered(5, 1, producer_id=4, producer_epoch=1, base_sequence=5))
    mark = again.producers.check(repeated)
    assert mark is not None
    assert mark.base_offset == 5
    following = read_header(numbered(8, 1, producer_id=4, producer_epoch=1, base_sequence=8))
    assert again.producers.check(following) is None


def test_a_producer_of_old_records_is_not_forgotten_early_after_a_crash(tmp_path: Path) -> None:
    day_ms = 24 * 3_600_000
    log = open_at(tmp_path)
    old = NewRecord(b"0", timestamp=NOW_MS - 30 * day_ms)
    batch = Batch([old], producer_id=4, producer_epoch=0, base_sequence=0).encode()
    append(log, batch)
    del log
    again = open_at(tmp_path, KILLED)
    again.producers.expire(NOW_MS - day_ms)
    assert again.producers.check(read_header(batch)) is not None


def test_the_epoch_of_each_offset_survives(tmp_path: Path) -> None:
    log = open_at(tmp_path, leader_epoch=0)
    fill(log, 2)
    log.close()
    log = open_at(tmp_path, KILLED, leader_epoch=3)
    fill(log, 2)
    log.close()
    (tmp_path / "leader-epochs").unlink()
    log = open_at(tmp_path, KILLED, leader_epoch=5)
    assert log.end_offset_for_epoch(0) == (0, 6)
    assert log.end_offset_for_epoch(2) == (0, 6)
    assert log.end_offset_for_epoch(3) == (3, 12)
    assert log.end_offset_for_epoch(5) == (5, 12)
    assert log.end_offset_for_epoch(6) == (-1, -1)


def test_recovery_is_the_same_twice(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 30)
    del log
    for _ in range(2):
        log = open_at(tmp_path, KILLED)
        assert log.log_end_offset == 90
        assert_dense(log)
        del log
