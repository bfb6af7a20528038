"""Duplicate detection for idempotent producers (KIP-98), and its snapshots."""

from pathlib import Path

import pytest
from crc32c import crc32c

from headgate.broker.log import producer_state
from headgate.broker.log.producer_state import OutOfOrderSequence, ProducerStates, StaleProducerEpoch
from headgate.broker.log.snapshots import drop_after, load_newest, newest_offset, write_snapshot
from headgate.wire.record_batch import BatchHeader, read_header
from tests.wire.record_batches import Batch, NewRecord

SEQUENCE_MAX = 2**31 - 1


def header(sequence: int, records: int = 1, *, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    rows = [NewRecord(b"v", timestamp=900 + sequence % 100)] * records
    batch = Batch(records=rows, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return read_header(batch.encode())


def written(*headers: BatchHeader) -> ProducerStates:
    states = ProducerStates()
    for number, each in enumerate(headers):
        assert states.check(each) is None
        states.record(each, 100 * number, 1000 + number)
    return states


def test_a_new_producer_may_start_with_any_sequence() -> None:
    assert ProducerStates().check(header(55)) is None


def test_the_next_sequence_follows_the_last_record() -> None:
    states = written(header(0, 3))
    assert states.check(header(3)) is None
    for sequence in (1, 2, 4):
        with pytest.raises(OutOfOrderSequence):
            states.check(header(sequence))


def test_sequences_wrap_around() -> None:
    states = written(header(SEQUENCE_MAX - 1, 2))
    assert states.check(header(0)) is None
    with pytest.raises(OutOfOrderSequence):
        states.check(header(1))
    across = written(header(SEQUENCE_MAX, 3))
    assert across.check(header(2)) is None


def test_a_duplicate_of_the_last_five_batches_is_found() -> None:
    states = written(*(header(number) for number in range(6)))
    for number in range(1, 6):
        mark = states.check(header(number))
        assert mark is not None
        assert (mark.base_sequence, mark.last_sequence) == (number, number)
        assert (mark.base_offset, mark.timestamp) == (100 * number, 900 + number)
    with pytest.raises(OutOfOrderSequence):
        states.check(header(0))


@pytest.mark.parametrize("records", [1, 3])
def test_a_batch_with_another_count_is_no_duplicate(records: int) -> None:
    with pytest.raises(OutOfOrderSequence):
        written(header(0, 2)).check(header(0, records))


def test_a_batch_with_the_same_last_sequence_is_no_duplicate() -> None:
    with pytest.raises(OutOfOrderSequence):
        written(header(0, 2)).check(header(1))


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    states = written(header(0, epoch=3))
    with pytest.raises(StaleProducerEpoch):
        states.check(header(1, epoch=2))
    with pytest.raises(OutOfOrderSequence):
        states.check(header(1, epoch=4))
    states.record(header(0, epoch=4), 9, 2000)
    assert states.by_id[7].epoch == 4
    assert [mark.base_offset for mark in states.by_id[7].batches] == [9]


def test_epoch_0_is_checked_and_epoch_minus_1_is_not() -> None:
    without_epoch = written(header(0, epoch=-1))
    assert without_epoch.check(header(9, epoch=-1)) is None
    assert without_epoch.check(header(9, epoch=0)) is None
    with pytest.raises(OutOfOrderSequence):
        written(header(0, epoch=0)).check(header(9, epoch=1))


def test_a_producer_without_batches_may_continue_anywhere() -> None:
    states = ProducerStates()
    states.restore([(7, 0, 1000, [])])
    assert states.check(header(5)) is None


def test_producers_expire_by_the_time_of_their_last_write() -> None:
    states = written(header(0, producer_id=1), header(0, producer_id=2))
    states.record(header(1, producer_id=1), 300, 1005)
    states.expire(1001)
    assert set(states.by_id) == {1, 2}
    states.expire(1002)
    assert set(states.by_id) == {1}
    states.expire(1006)
    assert states.by_id == {}


def test_at_the_limit_the_least_recently_active_tenth_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "producers_max", 20)
    states = ProducerStates()
    for producer_id in range(20):
        states.record(header(0, producer_id=producer_id), producer_id, 1000 + producer_id)
    states.record(header(1, producer_id=0), 99, 5000)
    assert len(states.by_id) == 20
    states.record(header(0, producer_id=20), 100, 5001)
    assert set(states.by_id) == set(range(21)) - {1, 2}


def test_a_restored_snapshot_detects_the_same_duplicates(tmp_path: Path) -> None:
    states = written(header(0), header(1, 2), header(0, producer_id=8, epoch=2))
    write_snapshot(tmp_path, 40, states)
    restored = written(header(0, producer_id=99))
    assert load_newest(tmp_path, 40, restored) == 40
    assert restored.by_id == states.by_id
    assert restored.check(header(1, 2)) == states.check(header(1, 2)) is not None


def test_the_newest_snapshot_at_or_before_the_offset_counts(tmp_path: Path) -> None:
    assert newest_offset(tmp_path) == 0
    assert load_newest(tmp_path, 100, ProducerStates()) == -1
    for offset in (0, 40):
        write_snapshot(tmp_path, offset, written(header(offset)))
    assert newest_offset(tmp_path) == 40
    found = ProducerStates()
    assert load_newest(tmp_path, 39, found) == 0
    assert found.by_id[7].batches[-1].base_sequence == 0
    assert load_newest(tmp_path, 40, found) == 40
    assert load_newest(tmp_path, 99, found) == 40


def test_older_snapshots_are_removed(tmp_path: Path) -> None:
    for offset in (1, 20, 300, 4000):
        write_snapshot(tmp_path, offset, ProducerStates())
    (tmp_path / "other.snapshot").touch()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["00000000000000000300.snapshot", "00000000000000004000.snapshot", "other.snapshot"]
    drop_after(tmp_path, 4000)
    assert newest_offset(tmp_path) == 4000
    drop_after(tmp_path, 3999)
    assert newest_offset(tmp_path) == 300


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "other type"])
def test_a_damaged_snapshot_is_skipped(tmp_path: Path, damage: str) -> None:
    for offset in (10, 20):
        write_snapshot(tmp_path, offset, written(header(offset)))
    path = tmp_path / f"{20:020d}.snapshot"
    content = path.read_bytes()
    if damage == "flip":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "truncate":
        path.write_bytes(content[:3])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        # A valid checksum over a map instead of a list of rows.
        path.write_bytes(crc32c(b"\x80").to_bytes(4) + b"\x80")
    found = ProducerStates()
    assert load_newest(tmp_path, 20, found) == 10
    assert found.by_id[7].batches[-1].base_sequence == 10


def test_an_empty_body_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / f"{20:020d}.snapshot").write_bytes(bytes(4))
    assert load_newest(tmp_path, 20, ProducerStates()) == -1
