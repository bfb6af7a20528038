"""Free TCP ports on loopback, below the kernel's ephemeral port range."""

import os
import random
import socket
import time

# Linux assigns ephemeral ports from 32768 on. It could assign a port from that range between check and bind.
FIRST_PORT = 15000
LAST_PORT = 31999


_given: set[int] = set()


def free_port() -> int:
    """Return a free port. Neither this process nor another worker of the run returns it again."""
    # Use the process id in the seed, so that concurrent test runs try different ports.
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
