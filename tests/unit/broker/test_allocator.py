"""Buffers that are freed stay with the process: the next request does not fault their pages in again."""

import platform
import subprocess
import sys

import pytest

ROUNDS = 50

# Four buffers of a megabyte at a time: more than glibc keeps of its own accord.
PROGRAM = f"""
import resource, sys
from broker.server.allocator import keep_freed_buffers

if sys.argv[1] == "kept":
    keep_freed_buffers()

def use():
    buffers = [bytearray(1024 * 1024) for _ in range(4)]
    for buffer in buffers:
        buffer[::4096] = bytes(256)

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
def test_freed_buffers_are_used_again() -> None:
    assert page_faults("kept") < ROUNDS < page_faults("as glibc does")
