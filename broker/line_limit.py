"""No flood of log lines: of each kind a bounded number per interval, then one line that tells how many were left out.

Who sends a thousand bad frames a second must not fill the disk with what is said about them. A kind is a message as it
is written in the code, without what is put into it: a handful, so there is nothing here that grows. A filter on the
broker's loggers, so that whoever logs need not know of it; the shell calls `next_interval`.
"""

import logging
import threading
from collections import Counter
from collections.abc import Sequence

# Enough to see what is going on, and five lines a second at most: half a megabyte in a quarter of an hour, where a
# fuzzer would have written 35.
lines_per_interval_max = 50
interval_ms = 10_000

LIMITED_LOGGERS = tuple(
    f"headgate.broker{part}" for part in ("", ".engine", ".log", ".server", ".timers", ".topics", ".turns")
)

_LEFT_OUT = "left out %d more lines of the last %d s like: %s"


class LineLimit(logging.Filter):
    def __init__(self, names: Sequence[str] = LIMITED_LOGGERS) -> None:
        super().__init__()
        self._loggers = [logging.getLogger(name) for name in names]
        self._lock = threading.Lock()
        self._seen: Counter[tuple[str, int, str]] = Counter()

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
            self._seen[kind] += 1
            return self._seen[kind] <= lines_per_interval_max

    def next_interval(self) -> None:
        """Tell what was left out, and let lines through again."""
        with self._lock:
            seen, self._seen = self._seen, Counter()
        for (name, level, message), count in seen.items():
            if count > lines_per_interval_max:
                left_out = count - lines_per_interval_max
                logging.getLogger(name).log(level, _LEFT_OUT, left_out, interval_ms // 1000, message)
