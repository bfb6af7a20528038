"""No flood of log lines: of each kind a burst, then so many per interval and one line that tells what was left out.

Who sends a thousand bad frames a second must not fill the disk with what is said about them. A kind is a message as it
is written in the code, without what is put into it: a handful, so there is nothing here that grows. A filter on the
broker's loggers, so that whoever logs need not know of it; the shell calls `next_interval`.
"""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

# A burst is told line by line: clients with the same mistake, the partitions of a disk that failed. What goes
# on after it gets ten lines a second: two megabytes in a quarter of an hour, where a fuzzer would have written 35.
lines_at_once_max = 2_000
lines_per_interval = 100
interval_ms = 10_000

_PARTS = (
    *("", ".background", ".engine", ".groups", ".log", ".produce", ".server", ".timers", ".topics", ".turns"),
    ".unsupported",
)
LIMITED_LOGGERS = tuple(f"headgate.broker{part}" for part in _PARTS)

_Kind: TypeAlias = tuple[str, int, str]

_LEFT_OUT = "left out %d more lines of the last %d s like: %s"


class LineLimit(logging.Filter):
    def __init__(self, names: Sequence[str] = LIMITED_LOGGERS) -> None:
        super().__init__()
        self._loggers = [logging.getLogger(name) for name in names]
        self._lock = threading.Lock()
        self._spent: Counter[_Kind] = Counter()
        self._left_out: Counter[_Kind] = Counter()

    def install(self) -> None:
        for logger in self._loggers:
            logger.addFilter(self)

    def uninstall(self) -> None:
        self.next_interval()
        for logger in self._loggers:
            logger.removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg is _LEFT_OUT:
            return True
        kind = (record.name, record.levelno, str(record.msg))
        with self._lock:
            if self._spent[kind] >= lines_at_once_max:
                self._left_out[kind] += 1
                return False
            self._spent[kind] += 1
            return True

    def next_interval(self) -> None:
        """Tell what was left out, and let some lines through again."""
        with self._lock:
            left_out, self._left_out = self._left_out, Counter()
            self._spent = Counter(
                {kind: spent - lines_per_interval for kind, spent in self._spent.items() if spent > lines_per_interval}
            )
        for (name, level, message), count in left_out.items():
            logging.getLogger(name).log(level, _LEFT_OUT, count, interval_ms // 1000, message)
