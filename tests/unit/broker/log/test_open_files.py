"""The open-file cache is bounded and never closes a file in use. Running out of descriptors is a transient error."""

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.broker.log import files
from headgate.broker.log.files import LogFile, list_directory, read_file, replace_file, sync_directory
from headgate.broker.log.open_files import Descriptor, OpenFiles, descriptors_max, files_min, other_descriptors
from headgate.broker.runtime.errors import StorageError
from tests.unit.broker.log.logs import assert_dense, fill, open_at


def open_descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found


def open_in(directory: Path) -> int:
    return sum(path.startswith(str(directory)) for path in open_descriptors().values())


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> OpenFiles:
    cache = OpenFiles(64)
    # Other tests in this worker process may have opened more descriptors. Then the cache would evict every file.
    monkeypatch.setattr(cache, "_descriptor_max", descriptors_max())
    monkeypatch.setattr(files, "open_files", cache)
    return cache


class UnopenedDescriptor(Descriptor):
    def __init__(self) -> None:
        self.number = 0

    def __del__(self) -> None:
        pass


class IdleFile:
    recently_used = is_dirty = is_discarded = False
    descriptor = UnopenedDescriptor()

    def release(self) -> None:
        pass


@contextmanager
def no_descriptor_left(free: int = 0) -> Iterator[None]:
    """Lower the descriptor limit, so that the process can open only `free` more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = [os.dup(0) for _ in range(free + 1)]
    for number in numbers:
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (numbers[-1], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_logs_share_a_bounded_number_of_open_files(tmp_path: Path, small_cache: OpenFiles) -> None:
    logs = [open_at(tmp_path / f"t-{number}", internal_segment_bytes="2000") for number in range(80)]
    for log in logs:
        fill(log, 30)
        assert open_in(tmp_path) <= small_cache.files_max
    for log in logs:
        assert_dense(log)
        assert open_in(tmp_path) <= small_cache.files_max
        fill(log, 1)
    for log in logs:
        assert_dense(log)


def test_a_file_in_use_is_not_closed_under_its_user(tmp_path: Path, small_cache: OpenFiles) -> None:
    file = LogFile(tmp_path / "a.log", is_new=True)
    file.write(0, b"content", memoryview(b""))
    held = file.descriptor()
    file.recently_used = False
    assert small_cache.evict(1) == 1
    assert os.pread(held.number, 7, 0) == b"content"
    number = held.number
    del held
    assert number not in open_descriptors()
    assert file.read(0, 7) == b"content"


def test_a_file_with_unsynced_writes_is_synced_before_it_is_closed(
    tmp_path: Path, small_cache: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    file = LogFile(tmp_path / "a.log", is_new=True)
    file.write(0, b"content", memoryview(b""))
    file.recently_used = False
    monkeypatch.setattr(os, "fdatasync", fails)
    small_cache.evict(1)
    monkeypatch.undo()
    # A second fsync would succeed, although the kernel dropped the pages.
    with pytest.raises(StorageError, match=r"fsync of a\.log failed"):
        file.sync()


def test_a_deleted_file_needs_no_sync(tmp_path: Path, small_cache: OpenFiles) -> None:
    """Retention may delete a segment while its sync waits in the queue of group commit."""
    file = LogFile(tmp_path / "a.log", is_new=True)
    file.write(0, b"content", memoryview(b""))
    file.release()
    file.path.unlink()
    file.discard()
    file.sync()


def test_clean_files_are_closed_before_dirty_ones(tmp_path: Path, small_cache: OpenFiles) -> None:
    dirty, clean = (LogFile(tmp_path / name, is_new=True) for name in ("dirty.log", "clean.log"))
    for file in (dirty, clean):
        file.write(0, b"content", memoryview(b""))
    clean.sync()
    assert small_cache.evict(1) == 1
    still_open = {path for path in open_descriptors().values() if path.startswith(str(tmp_path))}
    assert still_open == {str(dirty.path)}


def test_running_out_of_descriptors_closes_idle_files_and_retries(tmp_path: Path, small_cache: OpenFiles) -> None:
    idle = [LogFile(tmp_path / f"{number}.log", is_new=True) for number in range(4)]
    with no_descriptor_left():
        assert read_file(tmp_path / "missing") is None
        replace_file(tmp_path / "note", b"written")
        assert read_file(tmp_path / "note") == b"written"
        sync_directory(tmp_path)
        assert sorted(list_directory(tmp_path)) == [*(f"{number}.log" for number in range(4)), "note"]
    for file in idle:
        assert file.read(0, 1) == b""


def test_without_any_idle_file_the_error_is_recoverable(tmp_path: Path, small_cache: OpenFiles) -> None:
    (tmp_path / "note").write_bytes(b"there")
    log = open_at(tmp_path / "log")
    with no_descriptor_left():
        attempts: list[Callable[[], object]] = [
            lambda: sync_directory(tmp_path),
            lambda: replace_file(tmp_path / "note", b"other"),
            lambda: read_file(tmp_path / "note"),
            lambda: list_directory(tmp_path),
            lambda: fill(log, 1),
        ]
        for attempt in attempts:
            with pytest.raises(StorageError) as raised:
                attempt()
            assert raised.value.recoverable, raised.value
    assert log.failure is None
    fill(log, 1)
    assert_dense(log)


def test_one_free_descriptor_suffices_to_seal_a_segment(tmp_path: Path, small_cache: OpenFiles) -> None:
    log = open_at(tmp_path / "log", internal_segment_bytes="2000")
    fill(log, 1)
    held = log.segments[-1].file.descriptor()
    with no_descriptor_left(free=1):
        fill(log, 60)
    assert len(log.segments) > 2
    assert log.failure is None
    assert_dense(log)
    del held


@pytest.mark.parametrize("descriptors", [256, 1024, 65_536])
def test_connections_evict_the_cache_before_they_use_up_the_spare_descriptors(tmp_path: Path, descriptors: int) -> None:
    cache = OpenFiles(descriptors)
    kept = []
    for _ in range(cache.files_max):
        file = IdleFile()
        kept.append(file)
        cache.add(file, file.descriptor)
    file = IdleFile()
    cache.add(file, file.descriptor)
    assert len(cache) == cache.files_max, "a file was evicted"
    cache.make_room()
    assert cache.files_max - len(cache) == max(8, cache.files_max // 16)
    rooms = 1
    while cache.make_room():
        rooms += 1
    assert len(cache) == files_min
    assert rooms < other_descriptors // 2


@pytest.mark.parametrize(
    ("descriptors", "files_max", "highest_number"),
    [(1, 1, 1), (4, 2, 4), (64, 32, 56), (256, 128, 224), (1024, 704, 992), (10**6, 65_536, 10**6 - 32)],
)
def test_the_cache_leaves_descriptors_to_others(descriptors: int, files_max: int, highest_number: int) -> None:
    cache = OpenFiles(descriptors)
    assert (cache.files_max, cache._descriptor_max) == (files_max, highest_number)


def test_the_soft_limit_of_the_process_counts() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        assert descriptors_max() == soft - 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_high_descriptor_number_evicts_some_files() -> None:
    cache = OpenFiles(1024)
    kept = [IdleFile() for _ in range(20)]
    for file in kept:
        cache.add(file, file.descriptor)
    descriptor = UnopenedDescriptor()
    descriptor.number = cache._descriptor_max - 1
    newest = IdleFile()
    cache.add(newest, descriptor)
    assert len(cache) == 21
    descriptor.number += 1
    cache.add(newest, descriptor)
    assert len(cache) == 22 - 8


def test_a_deleted_file_is_never_created_again(tmp_path: Path, small_cache: OpenFiles) -> None:
    file = LogFile(tmp_path / "a.log", is_new=True)
    file.release()
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        file.read(0, 1)
    assert not file.path.exists()


def test_a_discarded_log_closes_its_files_without_the_garbage_collector(tmp_path: Path) -> None:
    gc.disable()
    try:
        log = open_at(tmp_path / "log", internal_segment_bytes="2000")
        fill(log, 30)
        cycle: list[object] = [log]
        cycle.append(cycle)
        region = log.read(0, 500, at_least_one=True)
        assert region is not None
        log.discard()
        assert open_in(tmp_path) == 1
        assert region.content()
        del region
        assert open_in(tmp_path) == 0
        with pytest.raises(StorageError, match="was deleted"):
            fill(log, 1)
    finally:
        gc.enable()
