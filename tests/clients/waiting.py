"""Waits for a condition that another process fulfils."""

import time
from collections.abc import Callable

# Only a failing test waits this long. On a busy machine, a JVM needs half a minute to start and join a group.
SECONDS_MAX = 120.0


def eventually(what: Callable[[], object], wanted: str, seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {wanted}")
        time.sleep(0.02)
