"""Stop a streaming query between two micro-batches."""

import threading
from collections.abc import Callable


class BatchGate:
    """Runs the micro-batches of one query. After `close`, no further batch starts."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._closed = False
        self.last: int = -1
        """The number of the last completed batch."""
        self.error: BaseException | None = None

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    @property
    def busy(self) -> bool:
        return self._busy

    def run(self, number: int, work: Callable[[], None]) -> None:
        """Run a batch. Raises `QueryStopping` if the gate is closed, and any exception of `work`."""
        with self._condition:
            if self._closed:
                raise QueryStopping(f"batch {number} was not started: the pipeline is stopping")
            self._busy = True
        try:
            work()
            self.last = number
        except BaseException as error:
            self.error = error
            raise
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()


class QueryStopping(Exception):
    """The pipeline is stopping. The next run processes the batch."""
