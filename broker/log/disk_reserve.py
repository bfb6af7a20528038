"""Reserved disk space that lets the broker delete data on a full disk.

Deleting records, topics and old segments needs a few blocks: for a new log start offset, or an entry in the metadata
journal. A start and a clean stop need a few blocks too. The reserve is a file of up to four megabytes. If one of these
operations finds the disk full, the broker removes the file and retries. The broker is then read-only until it can
allocate the reserve again. Otherwise producers would use up the space.
"""

import contextlib
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from headgate.broker.log.open_files import open_files
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.system_calls import allocate

# Size of the reserve: about a thousand blocks, but at most one sixteenth of the file system.
reserve_bytes_max = 4 * 1024 * 1024
reserve_share = 16

logger = logging.getLogger("headgate.broker.log")

T = TypeVar("T")


class DiskReserve:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "reserve"
        self._directory = directory
        self.is_released = False
        """The disk is full, and the broker is read-only."""
        self._postponed: list[Callable[[], object]] = []

    def open(self) -> None:
        """Allocate the reserve at start, after the process has locked the directory.

        Releases the reserve at once if the disk is nearly full, because recovery writes many small files.
        """
        if not self._is_allocated() and not self._allocate():
            self._release("too little space is left")
        elif self._free_bytes() < self._size_bytes() // 2:
            self._release("too little space is left to start")

    def use(self, action: Callable[[], T]) -> T:
        """Run an operation that frees space or saves state. If the disk is full, release the reserve and retry.

        The operation must change nothing if it fails. Raises StorageError.
        """
        try:
            return action()
        except StorageError as error:
            if not error.is_out_of_space or not self._release(str(error)):
                raise
        return action()

    def write(self, action: Callable[[], object]) -> None:
        """Run a write at start. If the reserve does not suffice, postpone the write until there is space.

        The broker is read-only until then. Raises StorageError for other failures.
        """
        try:
            self.use(action)
        except StorageError as error:
            if not error.is_out_of_space:
                raise
            self._postponed.append(action)

    def has_space(self) -> bool:
        """Whether records may be written. If the reserve was released, try to allocate it again."""
        if not self.is_released:
            return True
        if self._free_bytes() < 2 * self._size_bytes():
            return False
        try:
            while self._postponed:
                self._postponed[0]()
                self._postponed.pop(0)
        except StorageError as error:
            if not error.is_out_of_space:
                logger.error("the broker stays read-only: %s", error)
            return False
        if not self._allocate():
            return False
        self.is_released = False
        logger.warning("there is disk space again: the broker accepts writes")
        return True

    def check_space(self) -> None:
        """Raises StorageError while the disk is full and the broker is read-only."""
        if not self.has_space():
            raise StorageError("the disk is full: the broker is read-only until there is space", errno.ENOSPC)

    def _release(self, reason: str) -> bool:
        """Remove the reserve and make the broker read-only. Returns False if there is no reserve to remove."""
        if not self.is_released:
            self.is_released = True
            logger.error(
                "the disk of %s is full, the broker is read-only until there is space: %s", self._directory, reason
            )
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _allocate(self) -> bool:
        """Allocate the reserve. Returns False if there is too little space.

        After any other failure, the broker runs without a reserve. Some file systems cannot reserve space.
        """
        size = self._size_bytes()
        if self._free_bytes() < 2 * size:
            return False
        try:
            fd = open_files.open(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                allocate(fd, size)
            finally:
                os.close(fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return False
            logger.warning("no disk space is reserved for a full disk: %s", error.strerror)
        return True

    def _is_allocated(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size_bytes()
        except OSError:
            return False

    def _size_bytes(self) -> int:
        status = os.statvfs(self._directory)
        return min(reserve_bytes_max, status.f_frsize * status.f_blocks // reserve_share)

    def _free_bytes(self) -> int:
        status = os.statvfs(self._directory)
        return status.f_frsize * status.f_bavail
