"""The data directory: who owns it, how the last owner left it, and where each partition lies.

One process per directory, held by a lock that the kernel releases with the process. A marker says that the last stop
was clean; the machine's boot id says whether the page cache can have survived since.
"""

import base64
import fcntl
import json
import os
import uuid
from pathlib import Path

from broker.errors import DataDirectoryLocked, StorageError
from broker.log.files import remove_file, replace_file, sync_directory
from broker.log.index import read_entries
from broker.log.recovery import LastRun

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DELETED_SUFFIX = "-delete"


class DataDirectory:
    def __init__(self, path: Path, boot_id: str | None = None) -> None:
        self.path = path
        self._boot_id = boot_id if boot_id is not None else _read_text(_BOOT_ID) or "unknown"
        self._lock_fd = -1
        self.last_run = LastRun(stopped_cleanly=False, same_boot=False)
        self.recovery_points: dict[str, int] = {}

    def open(self) -> None:
        """Take the directory, creating it if need be, and read how it was left."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"cannot use data directory {self.path}: {error.strerror}", error.errno) from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock_fd)
            self._lock_fd = -1
            raise DataDirectoryLocked(
                f"{self.path} is in use by another process; stop it, or give this one another data directory"
            ) from error
        marker = self.path / "clean-shutdown"
        self.last_run = LastRun(
            stopped_cleanly=marker.exists(), same_boot=_read_text(self.path / "boot-id") == self._boot_id
        )
        self.recovery_points = self._read_recovery_points()
        remove_file(marker)
        replace_file(self.path / "boot-id", self._boot_id.encode())

    def close(self, *, clean: bool) -> None:
        if clean:
            replace_file(self.path / "clean-shutdown", b"")
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def identity(self) -> tuple[str, int]:
        """(cluster id, how many times the directory was left uncleanly): made at first, counted on."""
        path = self.path / "meta.json"
        known = _read_json(path)
        cluster_id, crashes = known.get("cluster_id"), known.get("unclean_starts")
        first_time = not isinstance(cluster_id, str)
        if not isinstance(cluster_id, str):
            cluster_id = _new_cluster_id()
        crashes = crashes if isinstance(crashes, int) else 0
        if not self.last_run.stopped_cleanly and not first_time:
            crashes += 1
        replace_file(path, json.dumps({"cluster_id": cluster_id, "unclean_starts": crashes, "version": 1}).encode())
        return cluster_id, crashes

    def partition_path(self, topic: str, index: int) -> Path:
        return self.path / f"{topic}-{index}"

    def create_partitions(self, topic: str, topic_id: uuid.UUID, indexes: range) -> None:
        """Make the directories of a topic's partitions, each with a note of whose it is."""
        self._forget_recovery_points({self.partition_path(topic, index).name for index in indexes})
        try:
            for index in indexes:
                path = self.partition_path(topic, index)
                path.mkdir(exist_ok=True)
                replace_file(path / "partition.metadata", _partition_note(topic, topic_id), durable=False)
        except OSError as error:
            raise StorageError(f"cannot create partitions of {topic}: {error.strerror}", error.errno) from error
        sync_directory(self.path)

    def owner(self, path: Path) -> tuple[str, uuid.UUID, int] | None:
        """(topic, topic id, partition) that a directory belongs to, from its note; None when it says nothing."""
        note = _read_json(path / "partition.metadata")
        topic, topic_id = note.get("topic"), note.get("topic_id")
        index = path.name.rpartition("-")[2]
        if not isinstance(topic, str) or not isinstance(topic_id, str) or path.name != f"{topic}-{index}":
            return None
        try:
            return topic, uuid.UUID(topic_id), int(index)
        except ValueError:
            return None

    def partition_paths(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if path.is_dir() and not path.name.endswith(_DELETED_SUFFIX))

    def set_aside(self, path: Path) -> Path:
        """Rename a partition's directory so that its name is free at once; the files go when nobody reads them."""
        aside = path.with_name(f"{path.name[:180]}.{uuid.uuid4().hex}{_DELETED_SUFFIX}")
        try:
            path.rename(aside)
        except FileNotFoundError:
            return aside
        except OSError as error:
            raise StorageError(f"cannot remove {path.name}: {error.strerror}", error.errno) from error
        return aside

    def remove_set_aside(self) -> None:
        """Delete for good what was set aside, now or by an earlier process."""
        for path in self.path.iterdir():
            if path.is_dir() and path.name.endswith(_DELETED_SUFFIX):
                for file in path.iterdir():
                    remove_file(file)
                path.rmdir()

    def write_recovery_points(self, points: dict[str, int]) -> None:
        if points != self.recovery_points:
            replace_file(self.path / "recovery-points", json.dumps(points).encode())
            self.recovery_points = points

    def _forget_recovery_points(self, names: set[str]) -> None:
        """What an earlier partition of the same name had on the disk says nothing about a new one."""
        if names & self.recovery_points.keys():
            left = {name: point for name, point in self.recovery_points.items() if name not in names}
            self.write_recovery_points(left)

    def _read_recovery_points(self) -> dict[str, int]:
        return {
            name: offset
            for name, offset in _read_json(self.path / "recovery-points").items()
            if isinstance(offset, int)
        }


def _partition_note(topic: str, topic_id: uuid.UUID) -> bytes:
    return json.dumps({"topic": topic, "topic_id": str(topic_id), "version": 1}).encode()


def _new_cluster_id() -> str:
    """A random UUID in Kafka's spelling: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def _read_text(path: Path) -> str | None:
    content = read_entries(path)
    return content.decode(errors="replace").strip() if content is not None else None


def _read_json(path: Path) -> dict[str, object]:
    """A small file of ours; one that is missing or damaged says nothing."""
    try:
        parsed = json.loads(read_entries(path) or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
