"""Reserved disk space: allocated at start, released on a full disk, allocated again when there is space."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.broker.log import disk_reserve
from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.runtime.errors import StorageError

BLOCK_BYTES = 4096
RESERVE_BYTES = 16 * BLOCK_BYTES
"""One sixteenth of a file system with 256 blocks."""


class FakeDisk:
    """A file system with 256 blocks. The test sets the number of free bytes and the errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free_bytes = 100 * BLOCK_BYTES
        self.blocks = 256
        self.allocated: list[int] = []
        self.error: OSError | None = None
        monkeypatch.setattr(os, "statvfs", self.status)
        monkeypatch.setattr(disk_reserve, "allocate", self.allocate)

    def status(self, _: object) -> SimpleNamespace:
        free = self.free_bytes // 512
        return SimpleNamespace(f_frsize=512, f_blocks=self.blocks * BLOCK_BYTES // 512, f_bavail=free, f_bfree=2 * free)

    def allocate(self, descriptor: int, size: int) -> None:
        if self.error is not None:
            raise self.error
        self.allocated.append(size)
        os.ftruncate(descriptor, size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    return FakeDisk(monkeypatch)


@pytest.fixture
def reserve(tmp_path: Path, disk: FakeDisk) -> DiskReserve:
    opened = DiskReserve(tmp_path)
    opened.open()
    return opened


class Action:
    """Fails with the given error numbers, one per call, then succeeds."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise StorageError("cannot write", self.errors.pop(0))
        return "done"


def test_the_reserve_is_a_sixteenth_of_a_small_disk(tmp_path: Path, reserve: DiskReserve, disk: FakeDisk) -> None:
    assert disk.allocated == [RESERVE_BYTES]
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES
    assert reserve.has_space()
    assert not reserve.is_released


def test_the_reserve_is_at_most_four_megabytes(tmp_path: Path, disk: FakeDisk) -> None:
    disk.blocks, disk.free_bytes = 1_000_000, 10**9
    DiskReserve(tmp_path).open()
    assert disk.allocated == [4 * 1024 * 1024]


@pytest.mark.parametrize(("size_bytes", "is_kept"), [(RESERVE_BYTES - 1, False), (RESERVE_BYTES, True)])
def test_the_reserve_of_an_earlier_run_is_kept(tmp_path: Path, disk: FakeDisk, size_bytes: int, is_kept: bool) -> None:
    (tmp_path / "reserve").write_bytes(bytes(size_bytes))
    DiskReserve(tmp_path).open()
    assert disk.allocated == ([] if is_kept else [RESERVE_BYTES])


@pytest.mark.parametrize(("missing_bytes", "is_released"), [(0, False), (512, True)])
def test_without_space_for_twice_the_reserve_none_is_allocated(
    tmp_path: Path, disk: FakeDisk, missing_bytes: int, is_released: bool
) -> None:
    disk.free_bytes = 2 * RESERVE_BYTES - missing_bytes
    reserve = DiskReserve(tmp_path)
    reserve.open()
    assert reserve.is_released is is_released
    assert disk.allocated == ([] if is_released else [RESERVE_BYTES])


@pytest.mark.parametrize(("missing_bytes", "is_released"), [(0, False), (512, True)])
def test_a_nearly_full_disk_releases_the_reserve_at_start(
    tmp_path: Path, disk: FakeDisk, missing_bytes: int, is_released: bool
) -> None:
    (tmp_path / "reserve").write_bytes(bytes(RESERVE_BYTES))
    disk.free_bytes = RESERVE_BYTES // 2 - missing_bytes
    reserve = DiskReserve(tmp_path)
    reserve.open()
    assert reserve.is_released is is_released
    assert (tmp_path / "reserve").exists() is not is_released


@pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_during_the_allocation_releases_the_reserve(
    tmp_path: Path, disk: FakeDisk, error_number: int
) -> None:
    disk.error = OSError(error_number, "full")
    reserve = DiskReserve(tmp_path)
    reserve.open()
    assert reserve.is_released
    assert not (tmp_path / "reserve").exists()


def test_a_file_system_that_cannot_reserve_space_is_used_without(tmp_path: Path, disk: FakeDisk) -> None:
    disk.error = OSError(errno.EOPNOTSUPP, "not supported")
    reserve = DiskReserve(tmp_path)
    reserve.open()
    assert not reserve.is_released
    assert reserve.has_space()
    assert not (tmp_path / "reserve").exists()


def test_an_operation_on_a_full_disk_is_repeated_with_the_reserve(tmp_path: Path, reserve: DiskReserve) -> None:
    action = Action(errno.ENOSPC)
    assert reserve.use(action) == "done"
    assert action.calls == 2
    assert reserve.is_released
    assert not (tmp_path / "reserve").exists()


def test_an_operation_that_succeeds_runs_once(reserve: DiskReserve) -> None:
    action = Action()
    assert reserve.use(action) == "done"
    assert action.calls == 1
    assert not reserve.is_released


def test_an_operation_without_a_reserve_fails(reserve: DiskReserve) -> None:
    reserve.use(Action(errno.ENOSPC))
    action = Action(errno.ENOSPC)
    with pytest.raises(StorageError):
        reserve.use(action)
    assert action.calls == 1


def test_other_errors_keep_the_reserve(tmp_path: Path, reserve: DiskReserve) -> None:
    for run in (reserve.use, reserve.write):
        action = Action(errno.EIO)
        with pytest.raises(StorageError):
            run(action)
        assert action.calls == 1
    assert not reserve.is_released
    assert (tmp_path / "reserve").exists()


def test_a_write_at_start_is_postponed_until_there_is_space(
    tmp_path: Path, reserve: DiskReserve, disk: FakeDisk
) -> None:
    first, second = Action(errno.ENOSPC, errno.ENOSPC), Action(errno.ENOSPC)
    reserve.write(first)
    reserve.write(second)
    assert (first.calls, second.calls) == (2, 1)
    disk.free_bytes = 2 * RESERVE_BYTES - 512
    assert not reserve.has_space()
    assert (first.calls, second.calls) == (2, 1)
    disk.free_bytes = 2 * RESERVE_BYTES
    assert reserve.has_space()
    assert (first.calls, second.calls) == (3, 2)
    assert not reserve.is_released
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES
    assert reserve.has_space()
    assert (first.calls, second.calls) == (3, 2)


@pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EIO])
def test_a_postponed_write_that_fails_again_keeps_the_broker_read_only(reserve: DiskReserve, error_number: int) -> None:
    action = Action(errno.ENOSPC, errno.ENOSPC, error_number)
    reserve.write(action)
    assert not reserve.has_space()
    assert reserve.is_released
    assert reserve.has_space()
    assert action.calls == 4


def test_the_broker_stays_read_only_while_the_reserve_cannot_be_allocated(reserve: DiskReserve, disk: FakeDisk) -> None:
    reserve.use(Action(errno.ENOSPC))
    disk.error = OSError(errno.ENOSPC, "full")
    with pytest.raises(StorageError) as caught:
        reserve.check_space()
    assert caught.value.is_out_of_space
    disk.error = None
    reserve.check_space()
    assert not reserve.is_released
