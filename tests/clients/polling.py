"""A thread that polls a single-threaded consumer and runs calls from other threads."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.clients.client import Got

T = TypeVar("T")
ANSWER_SECONDS_MAX = 30.0


class PollingThread:
    def __init__(self, poll: Callable[[], list[Got]], close: Callable[[], None]) -> None:
        self._poll = poll
        self._close = close
        self._records: list[Got] = []
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._records.extend(self._poll())
                while not self._asked.empty():
                    function, answer = self._asked.get()
                    try:
                        answer.set_result(function())
                    except BaseException as error:
                        answer.set_exception(error)
        except BaseException as error:
            self._failure = error
        finally:
            self._close()

    def received(self) -> list[Got]:
        if self._failure is not None:
            raise self._failure
        return list(self._records)

    def run(self, function: Callable[[], T]) -> T:
        answer: Future[T] = Future()
        self._asked.put((function, answer))
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            try:
                return answer.result(0.1)
            except TimeoutError:
                if self._failure is not None:
                    raise self._failure from None
                if answer.done() or time.monotonic() > deadline:
                    raise

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(ANSWER_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure
