"""Rate limit for log lines: each message allows a burst, then a fixed number of lines per interval.

A client that sends a thousand bad frames per second must not fill the disk with log lines. The limit counts lines per
message template, so the number of counters is small. It is a filter on the broker's loggers. The server calls
`next_interval` periodically. This also logs the number of suppressed lines.
"""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

# The burst is large enough for many clients with the same error, or for all partitions of a failed disk. After the
# burst, ten lines per second write 2 MB in 15 minutes. Without the limit, a fuzzer writes 35 MB.
lines_at_once_max = 2_000
lines_per_interval = 100
interval_ms = 10_000

_PARTS = (
    *("", ".background", ".engine", ".groups", ".log", ".produce", ".server", ".time_slicing", ".timers", ".topics"),
    ".unsupported",
)
LIMITED_LOGGERS = tuple(f"headgate.broker{part}" for part in _PARTS)

_Template: TypeAlias = tuple[str, int, str]

_SUPPRESSED = "suppressed %d similar lines in the last %d s: %s"


class LogRateLimit(logging.Filter):
    def __init__(self, names: Sequence[str] = LIMITED_LOGGERS) -> None:
        super().__init__()
        self._loggers = [logging.getLogger(name) for name in names]
        self._lock = threading.Lock()
        self._written: Counter[_Template] = Counter()
        self._suppressed: Counter[_Template] = Counter()

    def install(self) -> None:
        for logger in self._loggers:
            logger.addFilter(self)

    def uninstall(self) -> None:
        self.next_interval()
        for logger in self._loggers:
            logger.removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg is _SUPPRESSED:
            return True
        template = (record.name, record.levelno, str(record.msg))
        with self._lock:
            if self._written[template] >= lines_at_once_max:
                self._suppressed[template] += 1
                return False
            self._written[template] += 1
            return True

    def next_interval(self) -> None:
        """Log the number of suppressed lines per message, and allow more lines."""
        with self._lock:
            suppressed, self._suppressed = self._suppressed, Counter()
            left = {template: written - lines_per_interval for template, written in self._written.items()}
            self._written = Counter({template: written for template, written in left.items() if written > 0})
        for (name, level, message), count in suppressed.items():
            logging.getLogger(name).log(level, _SUPPRESSED, count, interval_ms // 1000, message)
