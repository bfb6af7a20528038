"""The data directory: its lock, the state of the last shutdown, and the partition directories.

A file lock limits the directory to one process. The kernel releases the lock when the process ends. A marker file
records a clean shutdown. The machine's boot id shows whether the page cache can have survived since then. Every state
file has a checksum (`broker.log.checked_file`). If a file is damaged or missing, the broker makes the assumption that
deletes no data.
"""

import fcntl
import json
import logging
import os
import re
import uuid
from pathlib import Path
from typing import NamedTuple

from headgate.broker.log.checked_file import DamagedFile, Stored, read_checked, write_checked
from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.files import remove_file, sync_directory
from headgate.broker.log.recovery import LastRun
from headgate.broker.runtime import system_calls
from headgate.broker.runtime.errors import DataDirectoryLocked, StorageError

logger = logging.getLogger("headgate.broker.log")

_BOOT_ID_FORM = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|unknown")
_DELETED_SUFFIX = "-delete"
_STRAY_SUFFIX = "-stray"
_PARTITION_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,8})")


class Owner(NamedTuple):
    """The partition that a directory belongs to."""

    topic: str
    topic_id: uuid.UUID
    partition: int


class DataDirectory:
    def __init__(self, path: Path, boot_id: str | None = None) -> None:
        self.path = path
        self._boot_id = boot_id if boot_id is not None else system_calls.boot_id()
        self._lock_fd: int | None = None
        self.reserve = DiskReserve(path)
        self.last_run: LastRun
        self.recovery_points: dict[str, int] = {}
        self._has_sound_points = False

    def open(self) -> None:
        """Lock the directory and read the state of the last shutdown. Creates the directory if it is missing."""
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"cannot use data directory {self.path}: {error.strerror}", error.errno) from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock_fd)
            self._lock_fd = None
            raise DataDirectoryLocked(
                f"{self.path} is in use by another process; stop it, or give this one another data directory"
            ) from error
        self.reserve.open()
        mode = self.path.stat().st_mode & 0o777
        if mode & 0o077:
            logger.warning(
                "Other users can access the data directory %s (mode %04o). To change it: chmod -R go= %s",
                self.path,
                mode,
                self.path,
            )
        for path in missing:
            _sync_new_name(path)
        self.recovery_points, points_are_known = self._read_recovery_points()
        marker, boot_id = self.path / "clean-shutdown", self._stored_boot_id()
        self.last_run = LastRun(
            stopped_cleanly=_is_clean(marker),
            same_boot=boot_id is None or boot_id == self._boot_id,
            recovery_points_known=points_are_known,
        )
        remove_file(marker)
        if boot_id != self._boot_id:
            self.reserve.write(lambda: write_checked(self.path / "boot-id", self._boot_id.encode()))
        if not self._has_sound_points:
            self.reserve.write(lambda: self._store_recovery_points(self.recovery_points))
        # Make the removal durable: the marker must not reappear after a power cut.
        sync_directory(self.path)

    def close(self, *, clean: bool) -> None:
        try:
            if clean:
                self.reserve.use(lambda: write_checked(self.path / "clean-shutdown", b"clean"))
        finally:
            if self._lock_fd is not None:
                os.close(self._lock_fd)
                self._lock_fd = None

    def partition_path(self, topic: str, index: int) -> Path:
        return self.path / f"{topic}-{index}"

    def create_partitions(self, topic: str, topic_id: uuid.UUID, indexes: range) -> None:
        """Create the directories of a topic's partitions. Each one gets a note that names its topic."""
        self._forget_recovery_points({self.partition_path(topic, index).name for index in indexes})
        try:
            for index in indexes:
                path = self.partition_path(topic, index)
                if path.exists():
                    self._move_out_of_the_way(path)
                path.mkdir()
                self.write_note(path, topic, topic_id)
        except OSError as error:
            raise StorageError(f"cannot create partitions of {topic}: {error.strerror}", error.errno) from error
        sync_directory(self.path)

    def write_note(self, path: Path, topic: str, topic_id: uuid.UUID) -> None:
        """Write the note that identifies the directory's topic if the metadata journal is lost.

        Does not fsync. Each start checks the note and rewrites it if a power cut removed it.
        """
        note = json.dumps({"topic": topic, "topic_id": str(topic_id), "version": 1}).encode()
        write_checked(path / "partition.metadata", note, durable=False)

    def repair_note(self, path: Path, topic: str, topic_id: uuid.UUID) -> None:
        """Write the note at start. On a full disk, the write waits until there is space."""
        self.reserve.write(lambda: self.write_note(path, topic, topic_id))

    def owner(self, path: Path) -> Owner | None:
        """Return the partition that the directory's note names, or None without a note. Raises DamagedFile."""
        note_path = path / "partition.metadata"
        stored = read_checked(note_path)
        if stored is None:
            return None
        note = _json_object(note_path, stored)
        topic, topic_id = note.get("topic"), note.get("topic_id")
        index = path.name.rpartition("-")[2]
        if not isinstance(topic, str) or not isinstance(topic_id, str) or path.name != f"{topic}-{index}":
            raise DamagedFile(note_path, "it is not the note of this directory")
        try:
            return Owner(topic, uuid.UUID(topic_id), int(index))
        except ValueError:
            raise DamagedFile(note_path, "it is not the note of this directory") from None

    def partition_paths(self) -> list[Path]:
        return sorted(
            path
            for path in self.path.iterdir()
            if path.is_dir() and not path.name.endswith((_DELETED_SUFFIX, _STRAY_SUFFIX))
        )

    def set_aside(self, path: Path) -> Path:
        """Rename a partition's directory, so that its name is free at once. `remove_set_aside` deletes the files."""
        return _rename(path, _DELETED_SUFFIX)

    def _move_out_of_the_way(self, path: Path) -> None:
        """Free the name of a directory that no topic owns. Keeps its records for the operator."""
        if any(segment.stat().st_size for segment in path.glob("*.log")):
            stray = _rename(path, _STRAY_SUFFIX)
            logger.warning("%s holds records of no known topic; they are kept in %s", path.name, stray.name)
        else:
            self.set_aside(path)

    def remove_set_aside(self) -> None:
        """Delete the directories that this process or an earlier one set aside."""
        for path in self.path.iterdir():
            if path.is_dir() and path.name.endswith(_DELETED_SUFFIX):
                for file in path.iterdir():
                    remove_file(file)
                path.rmdir()

    def write_recovery_points(self, points: dict[str, int]) -> None:
        if points != self.recovery_points:
            self._store_recovery_points(points)

    def _store_recovery_points(self, points: dict[str, int]) -> None:
        """Replace the file and keep the previous version as a fallback for a damaged file.

        The recovery points of the previous version are lower, so they are still correct.
        """
        path, previous = self.path / "recovery-points", self.path / "recovery-points.previous"
        if self._has_sound_points:
            try:
                previous.unlink(missing_ok=True)
                os.link(path, previous)
            except OSError as error:
                logger.warning("cannot keep a copy of recovery-points: %s", error.strerror)
        write_checked(path, json.dumps(points).encode())
        self.recovery_points, self._has_sound_points = points, True

    def _forget_recovery_points(self, names: set[str]) -> None:
        """Remove the recovery points of earlier partitions with these names. They do not apply to new partitions."""
        if names & self.recovery_points.keys():
            left = {name: point for name, point in self.recovery_points.items() if name not in names}
            self.write_recovery_points(left)

    def _read_recovery_points(self) -> tuple[dict[str, int], bool]:
        """Return the recovery points and whether they are certain.

        They are certain if they come from the newest file and its checksum confirms them.
        """
        newest = self.path / "recovery-points"
        for path in (newest, newest.with_name("recovery-points.previous")):
            try:
                stored = read_checked(path)
                if stored is None:
                    continue
                points = _points(path, stored)
            except DamagedFile as error:
                logger.error("%s; recovery reads more of the logs and cuts nothing out of their middle", error)
                continue
            self._has_sound_points = path == newest and stored.is_checked
            return points, self._has_sound_points
        return {}, False

    def _stored_boot_id(self) -> str | None:
        """Return the stored boot id, or None if it is unknown.

        For None, the caller assumes that the page cache survived. Recovery then truncates less.
        """
        path = self.path / "boot-id"
        try:
            stored = read_checked(path)
            if stored is None:
                return None
            if not stored.is_checked and not _BOOT_ID_FORM.fullmatch(stored.content.strip()):
                raise DamagedFile(path, "it holds no boot id")
        except DamagedFile as error:
            logger.error("%s; damage in the middle of a log is kept as after kill -9", error)
            return None
        return stored.content.decode(errors="replace").strip()


def topic_of(path: Path) -> tuple[str, int] | None:
    """Return (topic, partition) from the name of a partition's directory. Used if the note is lost."""
    match = _PARTITION_NAME.fullmatch(path.name)
    return (match[1], int(match[2])) if match is not None else None


def _rename(path: Path, suffix: str) -> Path:
    renamed = path.with_name(f"{path.name[:180]}.{uuid.uuid4().hex}{suffix}")
    try:
        path.rename(renamed)
    except FileNotFoundError:
        return renamed
    except OSError as error:
        raise StorageError(f"cannot remove {path.name}: {error.strerror}", error.errno) from error
    return renamed


def _sync_new_name(path: Path) -> None:
    """Make a new directory durable. Logs a warning if the fsync of its parent fails."""
    try:
        sync_directory(path.parent)
    except StorageError as error:
        logger.warning("%s may be lost by a power cut: %s", path, error)


def _is_clean(marker: Path) -> bool:
    try:
        stored = read_checked(marker)
        if stored is not None and stored.content != (b"clean" if stored.is_checked else b""):
            raise DamagedFile(marker)
    except DamagedFile as error:
        logger.error("%s; recovering as after a crash", error)
        return False
    return stored is not None


def _points(path: Path, stored: Stored) -> dict[str, int]:
    points = _json_object(path, stored)
    if not all(type(offset) is int and offset >= 0 for offset in points.values()):
        raise DamagedFile(path, "a recovery point is not an offset")
    return points  # type: ignore[return-value]


def _json_object(path: Path, stored: Stored) -> dict[str, object]:
    try:
        parsed = json.loads(stored.content)
    except ValueError:
        raise DamagedFile(path, "it is not JSON") from None
    if not isinstance(parsed, dict):
        raise DamagedFile(path, "it is not a JSON object")
    return parsed
