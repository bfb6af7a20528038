"""Memory that is freed is used again: its pages are not faulted in for every request, nor for every fetch."""

import platform
import subprocess
import sys

import pytest

ROUNDS = 50

PROGRAM = f"""
import resource, sys
from importlib import import_module

import numpy as np

module, megabytes, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if module:
    import_module(module).keep_freed_buffers()

def use():
    blocks = [np.empty(megabytes * 1024 * 1024, np.uint8) for _ in range(count)]
    for block in blocks:
        block[::4096] = 1

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(module: str, megabytes: int, count: int) -> int:
    command = [sys.executable, "-c", PROGRAM, module, str(megabytes), str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
@pytest.mark.parametrize(
    ("module", "megabytes", "count"),
    # The sizes of broker requests and of a worker's fetch. Both exceed glibc's default threshold.
    [("headgate.broker.server.run", 1, 4), ("headgate.spark_udfs.executor.worker_memory", 4, 5)],
)
def test_freed_memory_is_used_again(module: str, megabytes: int, count: int) -> None:
    assert page_faults(module, megabytes, count) < ROUNDS < page_faults("", megabytes, count)
