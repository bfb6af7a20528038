"""Bounded cache of open files, for all partitions together.

A process may have fewer file descriptors than the broker has partitions and segments. Log files open on demand and
stay open until others need the descriptor (second-chance replacement). Connections and short-lived files share the
same limit, so a part of it stays free for them.
"""

import errno
import os
import resource
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import Protocol

# Descriptors that log files leave to the listener, connections, temporary files and directories: a quarter of the
# limit for connections, and these for everything else.
other_descriptors = 64

# Upper bound on cached files: every open file uses kernel memory.
cached_files_max = 65_536

# Files closed at once when the process or the system runs out of descriptors, and how often the open is retried.
evicted_at_once = 8
open_attempts_max = 8

# Cached files that connections cannot displace.
files_min = 16

_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


class CachedFile(Protocol):
    """An open file that the cache may close."""

    recently_used: bool
    is_dirty: bool
    is_discarded: bool

    def release(self) -> None:
        """Drop the descriptor. If the file has unsynced writes, sync it first."""


class Descriptor:
    """An open file descriptor. It closes when the last reference to it goes, so an eviction cannot close it while
    another thread uses it in a system call."""

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
        """Adapt to the number of descriptors that the process may have."""
        spare = min(other_descriptors, descriptors_max // 4)
        self.files_max = min(max(descriptors_max - descriptors_max // 4 - spare, 1), cached_files_max)
        # The kernel gives out the lowest free number, so a number this high means that few are left.
        self._descriptor_max = descriptors_max - spare // 2

    def __len__(self) -> int:
        return len(self._files)

    def open(self, path: Path, flags: int, mode: int = 0o600) -> int:
        """os.open that closes idle log files and retries when no descriptor is left. Raises OSError."""
        for _ in range(open_attempts_max):
            try:
                return os.open(path, flags | os.O_CLOEXEC, mode)
            except OSError as error:
                if error.errno not in _EXHAUSTED or not self.evict(evicted_at_once):
                    raise
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def add(self, file: CachedFile, descriptor: Descriptor) -> None:
        """Register a file that was just opened, and close others if there are too many."""
        with self._lock:
            self._files.append(weakref.ref(file))
            excess = len(self._files) - self.files_max
        if descriptor.number >= self._descriptor_max:
            excess = max(excess, evicted_at_once)
        if excess > 0:
            self.evict(excess)

    def make_room(self) -> bool:
        """Close a few files in favour of connections; False if the cache is down to its minimum."""
        return len(self._files) > files_min and self.evict(evicted_at_once) > 0

    def evict(self, count: int) -> int:
        """Close up to `count` files, clean ones that were not used lately first; the number of files closed."""
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
            # Twice around: the first round may only clear the marks of recent use.
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
    """The number of file descriptors that this process may have."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return cached_files_max * 2 if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard limit, as the JVM does for Kafka."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems allow less than the hard limit they report. The soft limit stays.
            return
    open_files.resize(descriptors_max())


open_files = OpenFiles(descriptors_max())
"""Descriptors belong to the process, and so does the cache: brokers in one process share both."""
