"""Reads that do not wait for the disk.

The event loop reads only log file ranges that are in the page cache. It asks the kernel with RWF_NOWAIT (preadv2). A
few threads load cold ranges into the page cache first. Without RWF_NOWAIT support in the kernel or the file system,
every range counts as cached, and reads block.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from headgate.broker.log.open_files import Descriptor
from headgate.broker.runtime.system_calls import RWF_NOWAIT
from headgate.broker.runtime.worker_threads import Post, WorkerThreads

# Distance between two probes of a range: the default readahead window of Linux. The kernel loads pages in these units.
probe_step_bytes = 128 * 1024

# A thread reads up to this many bytes of a range at a time. The event loop sends them before the next read.
cold_read_bytes_max = 1024 * 1024

# A disk serves a few reads in parallel. More threads compete for the interpreter lock.
cold_read_threads = 4


class ReadableFile(Protocol):
    def descriptor(self) -> Descriptor: ...


class ColdRead(Exception):
    """The range is not in the page cache, so a read would wait for the disk.

    `work` is other work that would block the event loop. The thread runs it after the read. It must not raise.
    """

    def __init__(self, file: ReadableFile, position: int, length: int, work: Callable[[], None] | None = None) -> None:
        super().__init__(f"{length} bytes at {position} are not in the page cache")
        self.file = file
        self.position = position
        self.length = length
        self.work = work

    @property
    def end(self) -> int:
        return self.position + self.length


def cached_bytes(descriptor: Descriptor, position: int, length: int) -> int:
    """Return the number of leading bytes of the range that are cached.

    Probes the first byte of the range and the last byte of each step. A probe of a cold page starts readahead there.
    A cached page therefore does not imply that the following pages are cached.
    """
    if RWF_NOWAIT is None:
        return length
    number, scratch = descriptor.number, (bytearray(1),)
    at, end = position, position + length
    try:
        os.preadv(number, scratch, at, RWF_NOWAIT)
        while at < end:
            behind = min(at + probe_step_bytes, end)
            os.preadv(number, scratch, behind - 1, RWF_NOWAIT)
            at = behind
    except BlockingIOError:
        return at - position
    except OSError:
        # RWF_NOWAIT is not supported, or the later read reports the error.
        return length
    return length


def read_cached(descriptor: Descriptor, position: int, length: int) -> bytes | bytearray | None:
    """Return `length` bytes at `position`, or None if some are not cached. The file must contain the range."""
    if RWF_NOWAIT is None:
        return os.pread(descriptor.number, length, position)
    content = bytearray(length)
    try:
        count = os.preadv(descriptor.number, (content,), position, RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return os.pread(descriptor.number, length, position)
    return content if count == length else None


class PendingRead:
    """Ranges that a thread will read or is reading."""

    __slots__ = ("_done", "is_cancelled", "ranges", "work")

    def __init__(
        self, ranges: list[tuple[Descriptor, int, int]], work: list[Callable[[], None]], done: Callable[[], None]
    ) -> None:
        self.ranges = ranges
        self.work = work
        self.is_cancelled = False
        self._done = done

    def cancel(self) -> None:
        """Skip the remaining ranges and the callback. A read in progress runs to its end."""
        self.is_cancelled = True

    def finish(self) -> None:
        if not self.is_cancelled:
            self._done()


class ColdReads:
    """A bounded pool of threads that load file ranges into the page cache.

    Callers and completions run on the event loop's thread. Workers hand completions to it with `post`. A connection has
    at most one pending read for its output and one per in-flight fetch. The limits on connections and requests
    therefore bound the queue.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._threads: WorkerThreads[PendingRead] = WorkerThreads("cold-read", cold_read_threads, self._work)

    def load(self, ranges: Sequence[ColdRead], done: Callable[[], None]) -> PendingRead:
        """Read the ranges in a thread, then call `done`. Raises OSError if a file cannot be opened.

        Does not report failed reads: the caller reads again and gets the error then.
        """
        pending = PendingRead(
            [(cold.file.descriptor(), cold.position, cold.length) for cold in ranges],
            [cold.work for cold in ranges if cold.work is not None],
            done,
        )
        self._threads.start()
        self._threads.submit(pending)
        return pending

    def stop(self) -> None:
        self._threads.stop()

    def _work(self, jobs: Iterator[PendingRead]) -> None:
        scratch = bytearray(cold_read_bytes_max)
        for pending in jobs:
            ranges, pending.ranges = pending.ranges, []
            while ranges and not pending.is_cancelled:
                self.read(*ranges.pop(), scratch)
            while pending.work and not pending.is_cancelled:
                pending.work.pop()()
            # Drop the descriptors before the event loop continues.
            ranges.clear()
            self._post(pending.finish)
            del pending

    def read(self, descriptor: Descriptor, position: int, length: int, scratch: bytearray) -> None:
        """Read one range and discard the bytes. They stay in the page cache."""
        end = position + length
        while position < end:
            try:
                count = os.preadv(descriptor.number, (memoryview(scratch)[: end - position],), position)
            except OSError:
                return
            if count == 0:
                return
            position += count
