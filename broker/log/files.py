"""Disk access: log files, and changes that survive a power cut.

Log writes and fsyncs go through this module, so that tests can inject failures.
"""

import contextlib
import errno
import os
from pathlib import Path

from headgate.broker.log.open_files import Descriptor, open_files
from headgate.broker.log.page_cache import ColdRead, cached_bytes, read_cached
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.system_calls import send_file, sync_file, sync_file_and_metadata, write_at

# Chunk size of `LogFile.rewrite`, which recovery calls after a crash.
rewrite_bytes_max = 1024 * 1024

# Attempts to complete a short write before it counts as a failure.
write_attempts_max = 16


class LogFile:
    """A file that opens on demand and may be closed between two uses (`broker.log.open_files`).

    A discarded file is never opened again, because its name may belong to another file by then. If it is open, it
    stays open until the last reader has finished.
    """

    __slots__ = (
        "__weakref__",
        "_descriptor",
        "_exists",
        "_failure",
        "_name_unsynced",
        "is_dirty",
        "is_discarded",
        "path",
        "recently_used",
    )

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        """If `is_new` is set, the first sync also syncs the directory entry of the new file."""
        self.path = path
        self.is_dirty = False
        """Written since the last sync."""
        self.is_discarded = False
        self.recently_used = True
        self._exists = False
        self._failure: str | None = None
        self._name_unsynced = is_new
        self._descriptor: Descriptor | None = None
        try:
            self._open()
        except OSError as error:
            raise StorageError(f"cannot open {path.parent.name}/{path.name}: {error.strerror}", error.errno) from error

    def _open(self) -> Descriptor:
        if self.is_discarded:
            raise FileNotFoundError(errno.ENOENT, "the file was deleted", str(self.path))
        # Create the file only once. If it disappears later, a new empty file would hide the loss.
        flags = os.O_RDWR if self._exists else os.O_RDWR | os.O_CREAT
        descriptor = Descriptor(open_files.open(self.path, flags))
        self._exists = True
        self._descriptor = descriptor
        open_files.add(self, descriptor)
        return descriptor

    def descriptor(self) -> Descriptor:
        """Return the open descriptor. It stays open while the caller holds the reference. Raises OSError."""
        self.recently_used = True
        return self._descriptor or self._open()

    def release(self) -> None:
        """Close the file to free its descriptor. The next use opens it again.

        Syncs unsynced writes first. If writeback fails while no descriptor is open, the kernel can forget the error.
        A later fsync would then report success.
        """
        if self.is_dirty and not self.is_discarded:
            with contextlib.suppress(StorageError):
                self._sync_content()
        self._descriptor = None

    def discard(self) -> None:
        """Never open the file again. Call this after the file is removed or renamed."""
        self.is_discarded = True

    def size(self) -> int:
        return os.fstat(self.descriptor().number).st_size

    def read(self, position: int, length: int) -> bytes:
        """Raises OSError."""
        self.recently_used = True
        descriptor = self._descriptor or self._open()
        return os.pread(descriptor.number, length, position)

    def read_cached(self, position: int, length: int) -> bytes | bytearray | None:
        """Return the bytes of a range inside the file, or None if some are not in the page cache. Raises OSError."""
        return read_cached(self.descriptor(), position, length)

    def cached_bytes(self, position: int, length: int) -> int:
        """Return the number of leading bytes of a range that are in the page cache. Raises OSError."""
        return cached_bytes(self.descriptor(), position, length)

    def require_cached(self, position: int, length: int) -> None:
        """Raise ColdRead if a read of the range would wait for the disk. Raises OSError."""
        cached = self.cached_bytes(position, length)
        if cached < length:
            raise ColdRead(self, position + cached, length - cached)

    def send(self, socket_descriptor: int, position: int, length: int) -> int:
        """Send a range to a socket with sendfile. Returns the number of bytes sent. Raises OSError."""
        descriptor = self.descriptor()
        return send_file(socket_descriptor, descriptor.number, position, length)

    def write(self, position: int, head: bytes, rest: memoryview) -> int:
        """Write `head` and `rest` at `position`. A failed write is truncated again. Raises StorageError."""
        self.recently_used = self.is_dirty = True
        try:
            descriptor = self._descriptor or self._open()
        except OSError as error:
            raise StorageError(f"cannot open {self.path.name}: {error.strerror}", error.errno) from error
        try:
            written = write_at(descriptor.number, head, rest, position)
            if written != len(head) + len(rest):
                written = _write_rest(descriptor, position, b"".join((head, rest)), written)
        except OSError as error:
            self._cut_off(descriptor, position)
            raise StorageError(f"cannot write {self.path.name}: {error.strerror}", error.errno) from error
        # Set the flag again: a sync in another thread may have cleared it during the write.
        self.is_dirty = True
        return written

    def _cut_off(self, descriptor: Descriptor, position: int) -> None:
        try:
            os.ftruncate(descriptor.number, position)
        except OSError as error:
            # The state of the tail is unknown. EIO makes the error unrecoverable: only recovery can repair the file.
            raise StorageError(f"cannot cut {self.path.name} back: {error.strerror}", errno.EIO) from error

    def rewrite(self, start: int, end: int) -> None:
        """Write the bytes of a range again, unchanged, so that the next sync writes them to the disk.

        A failed fsync marks pages as clean that never reached the disk. A later fsync alone would skip them.
        """
        self.is_dirty = True
        try:
            descriptor = self.descriptor()
            for position in range(start, end, rewrite_bytes_max):
                data = os.pread(descriptor.number, min(rewrite_bytes_max, end - position), position)
                if len(data) < min(rewrite_bytes_max, end - position):
                    raise OSError(errno.EIO, "the file is shorter than it was")
                _write_rest(descriptor, position, data, 0)
        except OSError as error:
            raise StorageError(f"cannot rewrite {self.path.name}: {error.strerror}", error.errno) from error

    def truncate(self, size: int) -> None:
        try:
            descriptor = self.descriptor()
            os.ftruncate(descriptor.number, size)
        except OSError as error:
            raise StorageError(f"cannot truncate {self.path.name}: {error.strerror}", error.errno) from error

    def sync(self) -> None:
        """Flush to the disk.

        A failed fsync is final: the kernel may have dropped the pages, so a retry could report success. A failure to
        get a descriptor is recoverable, because no fsync has run.
        """
        if self.is_discarded:
            # Nothing reads the file after a restart.
            return
        self._sync_content()
        if self._name_unsynced:
            sync_directory(self.path.parent)
            self._name_unsynced = False

    def _sync_content(self) -> None:
        if self._failure is not None:
            raise StorageError(self._failure, errno.EIO)
        try:
            descriptor = self.descriptor()
        except OSError as error:
            raise StorageError(f"cannot open {self.path.name} to sync it: {error.strerror}", error.errno) from error
        self.is_dirty = False
        try:
            sync_file(descriptor.number)
        except OSError as error:
            # Keep only the text: the exception refers to this frame, so the file would never be closed.
            self._failure = f"fsync of {self.path.name} failed: {error.strerror}"
            raise StorageError(self._failure, errno.EIO) from error


def _write_rest(descriptor: Descriptor, position: int, data: bytes, written: int) -> int:
    for _ in range(write_attempts_max):
        if written == len(data):
            return written
        done = os.pwrite(descriptor.number, memoryview(data)[written:], position + written)
        if done == 0:
            break
        written += done
    raise OSError(errno.EIO, "the write stays short")


def sync_directory(path: Path) -> None:
    """Fsync a directory, so that created, renamed and removed names survive a power cut."""
    try:
        fd = open_files.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageError(f"cannot open directory {path.name} to sync it: {error.strerror}", error.errno) from error
    try:
        os.fsync(fd)
    except OSError as error:
        raise StorageError(f"fsync of directory {path.name} failed: {error.strerror}", errno.EIO) from error
    finally:
        os.close(fd)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Atomic replace: write a temporary file, fsync it if `durable`, rename it."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        fd = open_files.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                sync_file_and_metadata(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError as error:
        # Remove the temporary file: on a full disk it would occupy the last free blocks.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path.name}: {error.strerror}", error.errno) from error
    if durable:
        sync_directory(path.parent)


def read_file(path: Path) -> bytes | None:
    """Return the content, or None if the file is missing or unreadable.

    Raises StorageError if no file descriptor is left. The file must not count as missing in this case.
    """
    try:
        fd = open_files.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise StorageError(f"cannot open {path.name}: {error.strerror}", error.errno) from error
        return None
    try:
        with open(fd, "rb") as file:
            return file.read()
    except OSError:
        return None


def list_directory(path: Path) -> list[str]:
    """Return the names in a directory. Raises StorageError."""
    try:
        return open_files.retrying(lambda: os.listdir(path))
    except OSError as error:
        raise StorageError(f"cannot list {path.name}: {error.strerror}", error.errno) from error


def remove_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot remove {path.name}: {error.strerror}", error.errno) from error
