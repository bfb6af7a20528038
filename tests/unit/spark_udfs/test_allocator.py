"""Memory that a worker frees is used again: its pages are not faulted in for every fetch."""

import platform
import subprocess
import sys

import pytest

ROUNDS = 50

# As much as a fetch takes: some blocks of four megabytes.
PROGRAM = f"""
import resource, sys
import numpy as np
from spark_udfs.allocator import keep_freed_buffers

if sys.argv[1] == "kept":
    keep_freed_buffers()

def use():
    blocks = [np.empty(4 * 1024 * 1024, np.uint8) for _ in range(5)]
    for block in blocks:
        block[::4096] = 1

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    ran = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=60)
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_freed_blocks_are_used_again() -> None:
    assert page_faults("kept") < ROUNDS < page_faults("as glibc does")
