"""The journal: state stored as a log of keys and values."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.log import journal as journal_module
from headgate.broker.log.files import LogFile
from headgate.broker.log.journal import Journal
from headgate.broker.runtime.errors import StorageError
from tests.manual_clock import ManualClock
from tests.unit.broker.log.logs import KILLED, open_at


def state_of(journal: Journal) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for key, value in journal.entries():
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state


def test_the_newest_value_of_each_key_comes_back(tmp_path: Path) -> None:
    journal = Journal(open_at(tmp_path), ManualClock())
    journal.append_now([(b"a", b"1"), (b"b", b"1")])
    journal.append_now([(b"a", b"2"), (b"b", None)])
    again = Journal(open_at(tmp_path, KILLED), ManualClock())
    assert state_of(again) == {b"a": b"2"}


def test_compaction_keeps_the_state_and_drops_the_history(tmp_path: Path) -> None:
    state: dict[bytes, bytes] = {}
    journal = Journal(open_at(tmp_path), ManualClock())
    for round_number in range(300):
        key, value = b"key-%d" % (round_number % 7), b"%d" % round_number
        journal.append_now([(key, value)])
        state[key] = value
    before = journal.log.size_bytes
    journal.compact(state.items)
    assert journal.log.size_bytes < before / 10
    journal.append_now([(b"later", b"1")])
    state[b"later"] = b"1"
    again = Journal(open_at(tmp_path, KILLED), ManualClock())
    assert state_of(again) == state


def test_compaction_is_due_only_when_the_history_outweighs_the_state(tmp_path: Path) -> None:
    state = {b"big": b"x" * 100_000}
    journal = Journal(open_at(tmp_path), ManualClock())
    while journal.log.size_bytes <= journal_module.compact_bytes_min:
        assert not journal.is_compaction_due()
        journal.append_now(list(state.items()))
    assert journal.is_compaction_due()
    journal.compact(state.items)
    assert not journal.is_compaction_due()
    assert journal.log.size_bytes < 200_000


def test_entries_between_the_steps_of_a_compaction_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "snapshot_batch_entries", 10)
    state = {b"key-%02d" % number: b"old" for number in range(60)}
    journal = Journal(open_at(tmp_path), ManualClock())
    journal.append_now(list(state.items()))

    def snapshot() -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(state):
            if key in state:
                yield key, state[key]

    steps = 0
    for _ in journal.compacting(snapshot):
        steps += 1
        # One change before and one after the position of the snapshot, a deletion and a new key.
        changes = {b"key-05": b"%d" % steps, b"key-55": b"%d" % steps, b"new-%d" % steps: b"1"}
        deleted = b"key-%02d" % (10 * steps + 3)
        journal.append_now([*changes.items(), (deleted, None)])
        state.update(changes)
        del state[deleted]
    assert steps == 5
    assert len(journal.log.segments) == 1
    assert state_of(Journal(open_at(tmp_path, KILLED), ManualClock())) == state


def test_a_failed_compaction_is_repeated_only_when_the_journal_has_grown(tmp_path: Path) -> None:
    state = {b"big": b"x" * 100_000}
    journal = Journal(open_at(tmp_path), ManualClock())
    while not journal.is_compaction_due():
        journal.append_now(list(state.items()))

    def snapshot() -> Iterator[tuple[bytes, bytes]]:
        yield from state.items()
        raise StorageError("the disk is full", errno.ENOSPC)

    with pytest.raises(StorageError):
        journal.compact(snapshot)
    assert not journal.is_compaction_due()
    assert state_of(Journal(open_at(tmp_path, KILLED), ManualClock())) == state


@pytest.mark.parametrize("appended_before", [0, 1])
def test_an_append_that_found_no_descriptor_for_its_sync_leaves_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appended_before: int
) -> None:
    journal = Journal(open_at(tmp_path), ManualClock())
    expected = {b"before": b"1"} if appended_before else {}
    if expected:
        journal.append_now(list(expected.items()))
    with monkeypatch.context() as context:

        def fail(file: LogFile) -> None:
            raise StorageError("no descriptor is left", errno.EMFILE)

        context.setattr(LogFile, "sync", fail)
        with pytest.raises(StorageError):
            journal.append_now([(b"denied", b"1")])
    journal.append_now([(b"after", b"1")])
    again = Journal(open_at(tmp_path, KILLED), ManualClock())
    assert state_of(again) == {**expected, b"after": b"1"}
    assert again.damage == []


def test_the_first_copy_of_a_damaged_journal_is_kept(tmp_path: Path) -> None:
    journal = Journal(open_at(tmp_path), ManualClock())
    journal.append_now([(b"a", b"1")])
    journal.log.roll(0)
    copies = [segment.path("log.damaged") for segment in journal.log.segments]
    copies[0].write_bytes(b"first copy")
    journal.append_now([(b"a", b"2")])
    journal.replace_damaged(lambda: iter([(b"a", b"2")]))
    assert copies[0].read_bytes() == b"first copy"
    assert copies[1].stat().st_size > 0
    assert list(journal.entries()) == [(b"a", b"2")]
    assert journal.log.log_start_offset == 2
    # The next damage keeps the new segments, but no empty one.
    journal.log.roll(0)
    empty = journal.log.segments[-1].path("log.damaged")
    assert journal.log.segments[-1].size_bytes == 0
    journal.replace_damaged(lambda: iter([(b"a", b"2")]))
    assert not empty.exists()
