"""One event loop per process, in a separate thread. Spark calls from plain threads, but aiokafka needs an event loop.

While the calling thread decodes one fetch without the GIL, this thread receives the next fetch.
"""

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name="headgate-kafka", daemon=True).start()

    def start(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs a coroutine and returns its result. Raises its exceptions."""
        task = self.start(work)
        try:
            return task.result()
        except BaseException:
            task.cancel()
            raise


def loop_thread() -> LoopThread:
    return _of_process(os.getpid())


@cache
def _of_process(_process_id: int) -> LoopThread:
    # Cache per process: a fork copies the object, but not the thread.
    return LoopThread()
