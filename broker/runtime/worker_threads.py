"""A fixed number of daemon threads that process jobs from one queue."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Post = Callable[[Callable[[], None]], None]
"""Runs a callback on the event loop's thread. Worker threads report their results with it."""

Job = TypeVar("Job")


class WorkerThreads(Generic[Job]):
    """Calls `work` once in each thread. `work` iterates over the jobs and returns when the iterator ends."""

    def __init__(self, name: str, count: int, work: Callable[[Iterator[Job]], None]) -> None:
        self._name = name
        self._count = count
        self._work = work
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, job: Job) -> None:
        """Add a job to the queue. It waits there until the threads are started."""
        self._jobs.put(job)

    def start(self) -> None:
        """Start the threads if they are not running."""
        for number in range(self._count - len(self._threads)):
            # This iterator keeps no reference to a returned job. A reference would keep the job's file open.
            jobs = iter(self._jobs.get, None)
            thread = threading.Thread(target=self._work, args=(jobs,), name=f"{self._name}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Finish the queued jobs, then stop the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
