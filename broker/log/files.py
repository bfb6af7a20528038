"""The broker's door to the disk: files that close themselves, and changes that survive a power cut.

Everything that reaches the disk goes through here, so that a test can make it fail.
"""

import errno
import os
from pathlib import Path

from broker.errors import StorageError

# A write may be cut short; how often to go on before calling it a failure.
write_attempts_max = 16


class LogFile:
    """An open file that is closed when the last one who holds it lets go.

    A fetch that is still being sent, or an fsync under way, keeps a deleted segment readable without any count of its
    own: Python's reference is the count.
    """

    __slots__ = ("_name_unsynced", "fd", "path")

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        """`is_new` says that the file is being created, so that its first sync has to cover its name as well."""
        self.path = path
        self.fd = -1
        self._name_unsynced = is_new
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"cannot open {path.parent.name}/{path.name}: {error.strerror}", error.errno) from error

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def read(self, position: int, length: int) -> bytes:
        return os.pread(self.fd, length, position)

    def write(self, position: int, head: bytes, rest: memoryview) -> int:
        """Write both at `position`, or nothing: what a failed write left is cut off again."""
        try:
            written = os.pwritev(self.fd, (head, rest), position)
            if written != len(head) + len(rest):
                written = self._write_rest(position, b"".join((head, rest)), written)
        except OSError as error:
            self._cut_off(position)
            raise StorageError(f"cannot write {self.path.name}: {error.strerror}", error.errno) from error
        return written

    def _write_rest(self, position: int, data: bytes, written: int) -> int:
        for _ in range(write_attempts_max):
            if written == len(data):
                return written
            done = os.pwrite(self.fd, memoryview(data)[written:], position + written)
            if done == 0:
                break
            written += done
        raise OSError(errno.EIO, "the write stays short")

    def _cut_off(self, position: int) -> None:
        try:
            os.ftruncate(self.fd, position)
        except OSError as error:
            # A tail that is neither written nor removed: only recovery can say what is there.
            raise StorageError(f"cannot cut {self.path.name} back: {error.strerror}", errno.EIO) from error

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self.fd, size)
        except OSError as error:
            raise StorageError(f"cannot truncate {self.path.name}: {error.strerror}", error.errno) from error

    def sync(self) -> None:
        """Onto the disk. A failure is final: the kernel may have dropped the pages, so a second try would lie."""
        try:
            os.fdatasync(self.fd)
            if self._name_unsynced:
                sync_directory(self.path.parent)
                self._name_unsynced = False
        except OSError as error:
            raise StorageError(f"fsync of {self.path.name} failed: {error.strerror}", errno.EIO) from error


def sync_directory(path: Path) -> None:
    """Make names created, renamed or removed in `path` survive a power cut."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise StorageError(f"fsync of directory {path.name} failed: {error.strerror}", errno.EIO) from error


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` under `path`: the old file or the new one, never a mixture."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(f"cannot write {path.name}: {error.strerror}", error.errno) from error
    if durable:
        sync_directory(path.parent)


def remove_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot remove {path.name}: {error.strerror}", error.errno) from error
