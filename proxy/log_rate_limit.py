"""Rate limit for aiokafka's log lines. Thousands of group members repeat the same line while a coordinator is away.

Each kind of line (logger, level and message without its arguments) is written up to `lines_per_interval_max` times per
interval. The first line of a later interval says how many were left out.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LINES_PER_INTERVAL_MAX: Final = 10
INTERVAL_SECONDS: Final = 60.0
# Kinds that are counted. aiokafka has about a hundred; beyond this number counting starts again.
KINDS_MAX: Final = 1_000


@dataclass(slots=True)
class _Kind:
    since: float
    written: int = 0
    left_out: int = 0


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
            left_out = kind.left_out if kind is not None else 0
            kind = self._kinds[key] = _Kind(now)
            if left_out:
                record.msg, record.args = f"{record.getMessage()} ({left_out} lines like this were left out)", ()
        if kind.written >= LINES_PER_INTERVAL_MAX:
            kind.left_out += 1
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
