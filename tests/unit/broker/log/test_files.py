"""Log files: short writes, rewrites, syncs and ranges outside the page cache."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.broker.log import files
from headgate.broker.log.files import LogFile, replace_file, write_attempts_max
from headgate.broker.log.page_cache import ColdRead
from headgate.broker.runtime.errors import StorageError

EMPTY = memoryview(b"")


@pytest.fixture
def file(tmp_path: Path) -> LogFile:
    file = LogFile(tmp_path / "a.log", is_new=True)
    file.write(0, b"0123456789", EMPTY)
    return file


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The syncs of contents and directories, in order."""
    found: list[str] = []
    monkeypatch.setattr(files, "sync_file", lambda number: found.append("content"))
    monkeypatch.setattr(files, "sync_directory", lambda path: found.append(path.name))
    return found


@pytest.mark.parametrize(
    ("is_dirty", "is_discarded", "expected"),
    [(True, False, ["content"]), (False, False, []), (True, True, []), (False, True, [])],
)
def test_a_released_file_is_synced_if_that_matters(
    file: LogFile, syncs: list[str], is_dirty: bool, is_discarded: bool, expected: list[str]
) -> None:
    file.is_dirty, file.is_discarded = is_dirty, is_discarded
    file.release()
    assert syncs == expected


def test_the_first_sync_of_a_new_file_includes_its_name(file: LogFile, syncs: list[str], tmp_path: Path) -> None:
    states = [file.is_dirty]
    file.sync()
    file.sync()
    states.append(file.is_dirty)
    assert states == [True, False]
    assert syncs == ["content", tmp_path.name, "content"]
    other = LogFile(file.path)
    assert not other.is_dirty
    other.sync()
    assert syncs[3:] == ["content"]
    other.discard()
    other.sync()
    assert len(syncs) == 4


@pytest.mark.parametrize(("cached", "missing"), [(0, (20, 100)), (30, (50, 70)), (99, (119, 1)), (100, None)])
def test_the_range_behind_the_cached_bytes_is_cold(
    file: LogFile, monkeypatch: pytest.MonkeyPatch, cached: int, missing: tuple[int, int] | None
) -> None:
    monkeypatch.setattr(files, "cached_bytes", lambda descriptor, position, length: cached)
    if missing is None:
        file.require_cached(20, 100)
    else:
        with pytest.raises(ColdRead) as caught:
            file.require_cached(20, 100)
        assert (caught.value.position, caught.value.length) == missing


def limited_writes(monkeypatch: pytest.MonkeyPatch, sizes: Callable[[int], int]) -> list[tuple[int, bytes]]:
    """Let each write store only a part of its bytes. Return (position, bytes) of the writes."""
    writes: list[tuple[int, bytes]] = []
    pwrite = os.pwrite

    def limited(number: int, data: memoryview, position: int) -> int:
        part = bytes(data[: sizes(len(writes))])
        writes.append((position, part))
        return pwrite(number, part, position)

    def first(number: int, head: bytes, rest: memoryview, position: int) -> int:
        return pwrite(number, head[:1], position)

    monkeypatch.setattr(os, "pwrite", limited)
    monkeypatch.setattr(files, "write_at", first)
    return writes


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_a_short_write_is_completed(file: LogFile, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    limited_writes(monkeypatch, lambda _: step)
    assert file.write(10, b"head-", memoryview(b"and-rest")) == 13
    assert file.read(0, 100) == b"0123456789head-and-rest"


@pytest.mark.parametrize("sizes", [lambda number: 0, lambda number: 1 if number < write_attempts_max - 1 else 0])
def test_a_write_that_stays_short_is_undone(
    file: LogFile, monkeypatch: pytest.MonkeyPatch, sizes: Callable[[int], int]
) -> None:
    writes = limited_writes(monkeypatch, sizes)
    with pytest.raises(StorageError, match="the write stays short") as caught:
        file.write(10, bytes(50), memoryview(bytes(50)))
    assert not caught.value.recoverable
    assert len(writes) <= write_attempts_max
    assert file.read(0, 100) == b"0123456789"


def test_a_write_that_cannot_be_undone_stops_the_log(file: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(files, "write_at", fails)
    with pytest.raises(StorageError) as caught:
        file.write(10, b"x", EMPTY)
    assert caught.value.recoverable
    monkeypatch.setattr(os, "ftruncate", fails)
    with pytest.raises(StorageError, match="cannot cut") as caught:
        file.write(10, b"x", EMPTY)
    assert not caught.value.recoverable


@pytest.mark.parametrize(
    ("start", "end", "written"),
    [(0, 10, [(0, b"0123"), (4, b"4567"), (8, b"89")]), (3, 8, [(3, b"3456"), (7, b"7")]), (4, 4, [])],
)
def test_a_rewrite_writes_the_same_bytes_again(
    file: LogFile, monkeypatch: pytest.MonkeyPatch, start: int, end: int, written: list[tuple[int, bytes]]
) -> None:
    monkeypatch.setattr(files, "rewrite_bytes_max", 4)
    file.is_dirty = False
    writes = limited_writes(monkeypatch, lambda _: 100)
    file.rewrite(start, end)
    assert writes == written
    assert file.is_dirty
    assert file.read(0, 100) == b"0123456789"


def test_a_rewrite_of_missing_bytes_fails(file: LogFile) -> None:
    with pytest.raises(StorageError, match="shorter than it was"):
        file.rewrite(5, 11)


@pytest.mark.parametrize("durable", [True, False])
def test_a_replaced_file_is_synced_if_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: list[str], durable: bool
) -> None:
    monkeypatch.setattr(files, "sync_file_and_metadata", lambda number: syncs.append("content"))
    replace_file(tmp_path / "note", b"x" * 100_000, durable=durable)
    assert (tmp_path / "note").read_bytes() == b"x" * 100_000
    assert syncs == (["content", tmp_path.name] if durable else [])
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_replaced_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note").write_bytes(b"before")

    def fails(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(StorageError):
        replace_file(tmp_path / "note", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["note"]
    assert (tmp_path / "note").read_bytes() == b"before"
