"""Rate limit for aiokafka's log lines. Without it, thousands of group members repeat the same line during an outage.

Each kind of line (logger, level and message without its arguments) is written up to `LINES_PER_INTERVAL_MAX` times per
interval. The first line of the next interval contains the number of suppressed lines.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LINES_PER_INTERVAL_MAX: Final = 10
INTERVAL_SECONDS: Final = 60.0
KINDS_MAX: Final = 1_000
"""Kinds of lines. aiokafka has about a hundred. Beyond the limit all counters are reset."""


@dataclass(slots=True)
class _Kind:
    since: float
    written: int = 0
    suppressed: int = 0


class LogRateLimit(logging.Filter):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, int, str], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        key = (record.name, record.levelno, str(record.msg))
        kind = self._kinds.get(key)
        if kind is None or now - kind.since >= INTERVAL_SECONDS:
            if kind is None and len(self._kinds) >= KINDS_MAX:
                self._kinds.clear()
            suppressed = kind.suppressed if kind is not None else 0
            kind = self._kinds[key] = _Kind(now)
            if suppressed:
                record.msg, record.args = f"{record.getMessage()} ({suppressed} similar lines were suppressed)", ()
        if kind.written >= LINES_PER_INTERVAL_MAX:
            kind.suppressed += 1
            return False
        kind.written += 1
        return True


def limit_client_log() -> None:
    """Write aiokafka's warnings and errors to stderr, rate limited."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(LogRateLimit())
    logger = logging.getLogger("aiokafka")
    logger.addHandler(handler)
    logger.propagate = False
