"""Group commit: one fsync serves all waiting batches, and a failed fsync is final."""

import errno
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.broker.log import group_commit
from headgate.broker.log.files import LogFile
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.runtime.errors import StorageError
from tests.unit.broker.log.logs import append, fill, numbered, open_at


class Loop:
    """Replaces the event loop: callbacks wait until the test runs them."""

    def __init__(self) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def run_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "nothing came back from the sync threads"
            self.posted.get(timeout=10)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def commit(loop: Loop) -> Iterator[GroupCommit]:
    commit = GroupCommit(loop.posted.put)
    commit.start()
    yield commit
    commit.stop()


def test_batches_that_arrive_during_a_sync_share_the_next_one(
    tmp_path: Path, loop: Loop, commit: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = 0
    first_sync_runs, all_have_arrived = threading.Event(), threading.Event()
    real = LogFile.sync

    def counted(file: LogFile) -> None:
        nonlocal syncs
        syncs += 1
        first_sync_runs.set()
        assert all_have_arrived.wait(10)
        real(file)

    monkeypatch.setattr(LogFile, "sync", counted)
    log = open_at(tmp_path)
    append(log, numbered(0))
    waiting = [commit.flush(log)]
    assert first_sync_runs.wait(10)
    for number in range(1, 50):
        append(log, numbered(number))
        waiting.append(commit.flush(log))
    all_have_arrived.set()
    loop.run_until(lambda: all(deferred.done for deferred in waiting))
    assert log.flushed_offset == 50
    assert syncs == 2


def test_a_flush_of_synced_data_completes_at_once(tmp_path: Path, loop: Loop, commit: GroupCommit) -> None:
    log = open_at(tmp_path)
    fill(log, 1)
    first = commit.flush(log)
    loop.run_until(lambda: first.done)
    assert commit.flush(log).done


def test_segments_sealed_since_the_last_flush_are_synced_too(
    tmp_path: Path, loop: Loop, commit: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set()
    monkeypatch.setattr(LogFile, "sync", lambda file: synced.add(file.path.name))
    log = open_at(tmp_path, internal_segment_bytes="1000")
    fill(log, 30)
    done = commit.flush(log)
    loop.run_until(lambda: done.done)
    assert synced == {segment.path("log").name for segment in log.segments}


def test_a_failed_sync_stops_the_log_for_good(
    tmp_path: Path, loop: Loop, commit: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(file: LogFile) -> None:
        raise StorageError("fsync failed", 5)

    log = open_at(tmp_path)
    fill(log, 1)
    monkeypatch.setattr(LogFile, "sync", fails)
    results: list[StorageError | None] = []
    waiting = [commit.flush(log), commit.flush(log)]
    for deferred in waiting:
        deferred.then(results.append)
    loop.run_until(lambda: len(results) == 2)
    assert all(isinstance(result, StorageError) for result in results)
    monkeypatch.undo()
    with pytest.raises(StorageError):
        fill(log, 1)
    assert commit.flush(log).done


@pytest.mark.parametrize(("failures", "attempts_max"), [(2, 3), (3, 3), (1, 1)])
def test_a_sync_without_a_free_descriptor_is_retried_a_limited_number_of_times(
    tmp_path: Path,
    loop: Loop,
    commit: GroupCommit,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    attempts_max: int,
) -> None:
    attempts = 0

    def sync(file: LogFile) -> None:
        nonlocal attempts
        attempts += 1
        if attempts <= failures:
            raise StorageError("no descriptor", errno.EMFILE)

    monkeypatch.setattr(group_commit, "sync_attempts_max", attempts_max)
    monkeypatch.setattr(group_commit, "sync_retry_ms", 1)
    monkeypatch.setattr(LogFile, "sync", sync)
    log = open_at(tmp_path)
    fill(log, 1)
    results: list[StorageError | None] = []
    commit.flush(log).then(results.append)
    loop.run_until(lambda: bool(results))
    assert attempts == min(failures + 1, attempts_max)
    assert (results[0] is None) == (failures < attempts_max)
    assert log.flushed_offset == (3 if failures < attempts_max else 0)
