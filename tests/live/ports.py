"""Free TCP ports on loopback, below the range that the kernel hands out to outgoing connections."""

import os
import random
import socket
import time

# Linux gives clients' ports from 32768 on: a server port from there may be taken between the check and the bind.
FIRST_PORT = 15000
LAST_PORT = 31999


_given: set[int] = set()


def free_port() -> int:
    """A port that nobody has, and that neither this process nor another worker of the run gives out again."""
    # Seeded by the process, so that two test runs side by side walk different ports.
    order = random.Random(f"{os.getpid()} {time.monotonic_ns()}")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for _ in range(200):
        port = order.randrange(FIRST_PORT + worker, LAST_PORT + 1, workers)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError(f"no free port between {FIRST_PORT} and {LAST_PORT}")


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False
