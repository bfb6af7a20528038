"""The data directory: its lock and modes, the last shutdown, recovery points and partition directories."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.log import directory as directory_module
from headgate.broker.log.directory import DataDirectory, Owner, topic_of
from headgate.broker.runtime.errors import DataDirectoryLocked, StorageError

BOOT = "12345678-1234-1234-1234-123456789abc"
OTHER_BOOT = "87654321-1234-1234-1234-123456789abc"
ID = uuid.UUID(int=7)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def opened(path: Path, boot_id: str = BOOT) -> DataDirectory:
    directory = DataDirectory(path, boot_id)
    directory.open()
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[DataDirectory]:
    directory = opened(tmp_path / "data")
    yield directory
    directory.close(clean=False)


def test_only_the_owner_can_access_a_new_directory(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        directory = opened(tmp_path / "a" / "data")
        directory.close(clean=True)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a" / "data") == 0o700
    assert {mode_of(path) for path in (tmp_path / "a" / "data").iterdir()} == {0o600}


def test_the_names_of_new_directories_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(directory_module, "sync_directory", synced.append)
    opened(tmp_path / "a" / "data").close(clean=False)
    assert synced == [tmp_path / "a", tmp_path, tmp_path / "a" / "data"]


def test_one_process_uses_a_directory(tmp_path: Path, directory: DataDirectory) -> None:
    with pytest.raises(DataDirectoryLocked):
        opened(directory.path)
    with pytest.raises(DataDirectoryLocked):
        opened(directory.path)
    directory.close(clean=False)
    directory.close(clean=False)
    opened(directory.path).close(clean=False)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot use data directory"):
        opened(tmp_path / "file")


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("boot_id", [BOOT, OTHER_BOOT])
def test_the_last_shutdown_is_known(tmp_path: Path, clean: bool, boot_id: str) -> None:
    opened(tmp_path).close(clean=clean)
    directory = opened(tmp_path, boot_id)
    assert (directory.last_run.stopped_cleanly, directory.last_run.same_boot) == (clean, boot_id == BOOT)
    assert directory.last_run.recovery_points_known
    directory.close(clean=False)
    # A start removes the marker of a clean shutdown and stores the boot id.
    again = opened(tmp_path, boot_id)
    assert (again.last_run.stopped_cleanly, again.last_run.same_boot) == (False, True)
    again.close(clean=False)


def test_a_new_directory_has_no_recovery_points(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert (directory.recovery_points, directory.last_run.recovery_points_known) == ({}, False)
    assert directory.last_run.same_boot
    directory.close(clean=False)


def test_recovery_points_are_written_if_they_change(directory: DataDirectory) -> None:
    directory.write_recovery_points({"a-0": 5})
    path = directory.path / "recovery-points"
    first = path.stat().st_ino
    directory.write_recovery_points({"a-0": 5})
    assert path.stat().st_ino == first
    directory.write_recovery_points({"a-0": 6, "b-0": 0})
    assert path.stat().st_ino != first
    assert (directory.path / "recovery-points.previous").stat().st_ino == first
    directory.close(clean=False)
    again = opened(directory.path)
    assert again.recovery_points == {"a-0": 6, "b-0": 0}
    again.close(clean=False)
    path.unlink()
    fallback = opened(directory.path)
    assert (fallback.recovery_points, fallback.last_run.recovery_points_known) == ({"a-0": 5}, False)
    fallback.close(clean=False)


@pytest.mark.parametrize("content", [b'{"a-0": -1}', b'{"a-0": true}', b'{"a-0": "1"}', b"[]", b"{"])
def test_other_recovery_points_are_not_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "recovery-points").write_bytes(content)
    directory = opened(tmp_path)
    assert (directory.recovery_points, directory.last_run.recovery_points_known) == ({}, False)
    directory.close(clean=False)


def test_recovery_points_without_a_checksum_are_used_with_doubt(tmp_path: Path) -> None:
    (tmp_path / "recovery-points").write_bytes(b'{"a-0": 0}')
    directory = opened(tmp_path)
    assert (directory.recovery_points, directory.last_run.recovery_points_known) == ({"a-0": 0}, False)
    directory.close(clean=False)


def test_new_partitions_do_not_inherit_recovery_points(directory: DataDirectory) -> None:
    directory.write_recovery_points({"a-0": 5, "a-1": 6, "b-0": 7})
    directory.create_partitions("a", ID, range(1, 3))
    assert directory.recovery_points == {"a-0": 5, "b-0": 7}
    paths = [directory.partition_path("a", index) for index in (1, 2)]
    assert directory.partition_paths() == paths
    assert [directory.owner(path) for path in paths] == [Owner("a", ID, 1), Owner("a", ID, 2)]


@pytest.mark.parametrize("has_records", [True, False])
def test_a_directory_in_the_way_is_kept_if_it_has_records(directory: DataDirectory, has_records: bool) -> None:
    path = directory.partition_path("a", 0)
    path.mkdir()
    (path / "0.log").write_bytes(b"x" * has_records)
    directory.create_partitions("a", ID, range(1))
    assert directory.partition_paths() == [path]
    (other,) = [each for each in directory.path.iterdir() if each.is_dir() and each != path]
    assert other.name.endswith("-stray" if has_records else "-delete")
    assert other.name.startswith("a-0.")
    directory.remove_set_aside()
    assert other.exists() is has_records
    assert path.exists()


def test_a_directory_that_is_set_aside_is_removed_later(directory: DataDirectory) -> None:
    directory.create_partitions("x" * 249, ID, range(1))
    path = directory.partition_path("x" * 249, 0)
    renamed = directory.set_aside(path)
    assert renamed.exists()
    assert len(renamed.name) < 255
    assert directory.partition_paths() == []
    # A directory that is already gone is no error.
    assert not directory.set_aside(path).exists()
    directory.remove_set_aside()
    assert not renamed.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ("t", 0)),
        ("a-b-12", ("a-b", 12)),
        ("t-999999999", ("t", 999_999_999)),
        ("t-1000000000", None),
        ("t-01", None),
        ("t-", None),
        ("-1", None),
        ("t", None),
    ],
)
def test_a_partition_is_known_by_the_name_of_its_directory(name: str, expected: tuple[str, int] | None) -> None:
    assert topic_of(Path(name)) == expected
