"""A fixed number of daemon threads that take jobs from one queue."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Post = Callable[[Callable[[], None]], None]
"""Runs a callback on the event loop's thread. Worker threads report their results with it."""

Job = TypeVar("Job")


class WorkerThreads(Generic[Job]):
    """`work` runs once in each thread. It handles the jobs that it iterates over, and returns when they end."""

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
        """Start the threads, unless they run already."""
        for number in range(self._count - len(self._threads)):
            # An iterator that keeps no job, and so no open file, after it has handed the job out.
            jobs = iter(self._jobs.get, None)
            thread = threading.Thread(target=self._work, args=(jobs,), name=f"{self._name}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Finish the jobs that are in the queue, then end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
