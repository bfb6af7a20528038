"""Group commit: one fdatasync serves every batch that waits for it.

A producer with acks=all waits until its batch is on the disk. Waiting logs form a queue for a few worker threads. The
batches that arrive during a sync share the next sync. Callers and completions run on the event loop's thread. Workers
hand completions to that thread with `post`. An unrecoverable sync failure stops the log until the broker restarts.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from headgate.broker.log.files import LogFile
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import PartitionDeleted, StorageError
from headgate.broker.runtime.worker_threads import Post, WorkerThreads

# The disk runs a few syncs of different files in parallel. More threads only wait for the file system's journal.
worker_threads = 4

# Retry a sync for about ten seconds if no file descriptor is free. Producers then get a retriable error.
sync_attempts_max = 100
sync_retry_ms = 100


class _Waiting:
    """The producers that wait on one log."""

    __slots__ = ("deferreds", "log")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.deferreds: deque[tuple[int, Deferred[StorageError | None]]] = deque()


_Sync: TypeAlias = tuple[_Waiting, list[LogFile], int]
"""The waiting producers, the files to sync, and the log end offset that the sync covers."""


class GroupCommit:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._waiting: dict[int, _Waiting] = {}
        self._threads: WorkerThreads[_Sync] = WorkerThreads("fsync", worker_threads, self._work)

    def start(self) -> None:
        self._threads.start()

    def stop(self) -> None:
        self._threads.stop()

    def flush(self, log: PartitionLog) -> Deferred[StorageError | None]:
        """Flush the current content of `log`. Completes with None when it is on the disk, or with the error."""
        if log.is_deleted:
            return Deferred.of(_deleted(log))
        if log.failure is not None:
            return Deferred.of(log.failure)
        if log.flushed_offset >= log.log_end_offset:
            return Deferred.of(None)
        deferred: Deferred[StorageError | None] = Deferred()
        waiting = self._waiting.get(id(log))
        if waiting is None:
            waiting = self._waiting[id(log)] = _Waiting(log)
            waiting.deferreds.append((log.log_end_offset, deferred))
            self._submit(waiting)
        else:
            waiting.deferreds.append((log.log_end_offset, deferred))
        return deferred

    def _submit(self, waiting: _Waiting) -> None:
        log = waiting.log
        self._threads.submit((waiting, log.unflushed_files(), log.log_end_offset))

    def _work(self, jobs: Iterator[_Sync]) -> None:
        for job in jobs:
            waiting, files, offset = job
            error = _sync_all(files)
            del files, job
            self._post(lambda waiting=waiting, offset=offset, error=error: self._done(waiting, offset, error))  # type: ignore[misc]

    def _done(self, waiting: _Waiting, offset: int, error: StorageError | None) -> None:
        log, deferreds = waiting.log, waiting.deferreds
        if log.is_deleted:
            # The topic is deleted and its files have moved, so a failed sync does not mean that the disk failed.
            error = _deleted(log)
        elif error is not None:
            log.fail(error)
        if error is not None:
            del self._waiting[id(log)]
            while deferreds:
                deferreds.popleft()[1].complete(error)
            return
        shown_bytes = log.note_flushed(offset)
        ready = []
        while deferreds and deferreds[0][0] <= offset:
            ready.append(deferreds.popleft()[1])
        if deferreds:
            self._submit(waiting)
        else:
            del self._waiting[id(log)]
        for deferred in ready:
            deferred.complete(None)
        if shown_bytes and log.on_visible is not None:
            log.on_visible(shown_bytes)


def _sync_all(files: Sequence[LogFile]) -> StorageError | None:
    """Sync the files. If no file descriptor is left, wait and retry. Returns the last error."""
    for attempt in range(sync_attempts_max):
        try:
            for file in files:
                file.sync()
            return None
        except StorageError as error:
            if not error.recoverable or attempt == sync_attempts_max - 1:
                return error
        time.sleep(sync_retry_ms / 1000)
    return None


def _deleted(log: PartitionLog) -> PartitionDeleted:
    return PartitionDeleted(f"{log.name} was deleted")
