"""Bounded cache of open files, for all partitions together.

The descriptor limit of the process may be lower than the number of segments. Log files open on demand. They stay open
until the cache evicts them (second-chance replacement). Connections and short-lived files share the same limit, so the
cache leaves a part of it to them.
"""

import errno
import os
import resource
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

# Descriptors that the cache leaves to the listener, temporary files and directories. It leaves another quarter of the
# limit to connections.
other_descriptors = 64

# Upper bound on cached files: every open file uses kernel memory.
cached_files_max = 65_536

# If the process or the system runs out of descriptors: the number of files to evict per attempt, and of attempts.
evicted_at_once = 8
open_attempts_max = 8

# Cached files that connections cannot evict.
files_min = 16

# Connections evict all other files in about this many steps. Each step uses one of `other_descriptors`.
rooms_max = 16

_EXHAUSTED = (errno.EMFILE, errno.ENFILE)

T = TypeVar("T")


class CachedFile(Protocol):
    """An open file that the cache may close."""

    recently_used: bool
    is_dirty: bool
    is_discarded: bool

    def release(self) -> None:
        """Drop the descriptor. If the file has unsynced writes, sync it first."""


class Descriptor:
    """An open file descriptor that closes when its last reference is dropped.

    An eviction therefore cannot close it while another thread uses it in a system call.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class OpenFiles:
    def __init__(self, descriptors_max: int) -> None:
        self._lock = threading.Lock()
        self._files: deque[weakref.ref[CachedFile]] = deque()
        self.files_max = 0
        self._descriptor_max = 0
        self.resize(descriptors_max)

    def resize(self, descriptors_max: int) -> None:
        """Set the limits of the cache from the descriptor limit of the process."""
        spare = min(other_descriptors, descriptors_max // 4)
        self.files_max = min(max(descriptors_max - descriptors_max // 4 - spare, 1), cached_files_max)
        # The kernel assigns the lowest free number, so a number this high means that few are left.
        self._descriptor_max = descriptors_max - spare // 2

    def __len__(self) -> int:
        return len(self._files)

    def open(self, path: Path, flags: int, mode: int = 0o600) -> int:
        """Call `os.open`. If no descriptor is left, evict log files and retry. Raises OSError."""
        return self.retrying(lambda: os.open(path, flags | os.O_CLOEXEC, mode))

    def retrying(self, call: Callable[[], T]) -> T:
        """Run a call that needs a descriptor. If none is left, evict log files and retry. Raises OSError."""
        for _ in range(open_attempts_max):
            try:
                return call()
            except OSError as error:
                if error.errno not in _EXHAUSTED or not self.evict(evicted_at_once):
                    raise
        return call()

    def add(self, file: CachedFile, descriptor: Descriptor) -> None:
        """Register a newly opened file, and evict others if too many are open."""
        with self._lock:
            self._files.append(weakref.ref(file))
            excess = len(self._files) - self.files_max
        if descriptor.number >= self._descriptor_max:
            excess = max(excess, evicted_at_once)
        if excess > 0:
            self.evict(excess)

    def make_room(self) -> bool:
        """Evict files to free descriptors for connections. Returns False if the cache is at its minimum.

        Each call follows a connection that uses a spare descriptor. A call evicts so many files that the cache reaches
        its minimum before the connections use up the spare descriptors.
        """
        surplus = len(self._files) - files_min
        count = max(evicted_at_once, self.files_max // rooms_max)
        return surplus > 0 and self.evict(min(count, surplus)) > 0

    def evict(self, count: int) -> int:
        """Evict up to `count` files and return the number of closed files. Clean, idle files go first."""
        closed = 0
        for clean_only in (True, False):
            while closed < count:
                file = self._next_victim(clean_only=clean_only)
                if file is None:
                    break
                file.release()
                closed += 1
        return closed

    def _next_victim(self, *, clean_only: bool) -> CachedFile | None:
        with self._lock:
            files = self._files
            # Two rounds: the first one may only clear the `recently_used` flags.
            for _ in range(2 * len(files)):
                reference = files.popleft()
                file = reference()
                if file is None or file.is_discarded:
                    continue
                if file.recently_used or (clean_only and file.is_dirty):
                    file.recently_used = False
                    files.append(reference)
                    continue
                return file
        return None


def descriptors_max() -> int:
    """Return the soft limit on file descriptors of this process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return cached_files_max * 2 if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard limit, as the JVM does for Kafka."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems allow less than the hard limit that they report. Keep the soft limit.
            return
    open_files.resize(descriptors_max())


open_files = OpenFiles(descriptors_max())
"""The cache of this process. Brokers in one process share it, because they share the descriptor limit."""
