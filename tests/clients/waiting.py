"""Waits for something that another process brings about."""

import time
from collections.abc import Callable

SECONDS_MAX = 30.0


def eventually(what: Callable[[], object], wanted: str, seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {wanted}")
        time.sleep(0.02)
