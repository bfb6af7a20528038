"""Measures the CPU time and memory of a Spark session: its JVM and the Python workers."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

SAMPLE_SECONDS = 0.05
CPU_SAMPLE_SECONDS = 0.25
"""The maximum CPU time of a worker that is lost when the worker exits during a run."""
MEGABYTE = 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")


def jvm_of(spark: SparkSession) -> int:
    """Return the process id of the JVM."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def below(pid: int) -> list[int]:
    """Return all descendant processes. Below a session's JVM, these are the Python daemon and its forked workers."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    new = [int(child) for child in children.read_text().split()]
                    found += new
                    waiting += new
    return found


@dataclass(slots=True)
class CpuClock:
    """CPU seconds of a JVM and its descendants, including processes that have exited.

    The Python driver only waits, so it is excluded.
    """

    jvm: int
    _ticks: dict[tuple[int, str], int] = field(default_factory=dict)

    def seconds(self) -> float:
        for pid in (self.jvm, *below(self.jvm)):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                # The kernel reuses process ids. The start time makes the key unique.
                self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])
        return sum(self._ticks.values()) / TICKS


@dataclass(slots=True)
class Metered:
    """A benchmark run that records the CPU time of each call."""

    clock: CpuClock
    run: Callable[[], object]
    rows: int
    cpu_us_per_row: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        before = self.clock.seconds()
        with repeatedly(self.clock.seconds, CPU_SAMPLE_SECONDS):
            self.run()
        self.cpu_us_per_row.append((self.clock.seconds() - before) / self.rows * 1e6)


@dataclass(slots=True)
class Peak:
    jvm_mb: float = 0.0
    python_mb: float = 0.0
    """Total of all processes below the JVM."""
    largest_python_mb: float = 0.0
    """Largest single process below the JVM."""

    def sample(self, jvm: int) -> None:
        self.jvm_mb = max(self.jvm_mb, memory_bytes(jvm, "Rss") / MEGABYTE)
        # Forked workers share memory pages. The proportional set size (PSS) counts shared pages once.
        shares = [memory_bytes(pid, "Pss") / MEGABYTE for pid in below(jvm)]
        self.python_mb = max(self.python_mb, sum(shares))
        self.largest_python_mb = max(self.largest_python_mb, *shares, 0.0)


def memory_bytes(pid: int, kind: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def repeatedly(call: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call a function periodically in a thread while the block runs."""
    is_done = Event()

    def loop() -> None:
        while not is_done.wait(seconds):
            call()

    thread = Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


@contextlib.contextmanager
def watched(jvm: int) -> Iterator[Peak]:
    """Yield the memory peaks while the block runs."""
    peak = Peak()
    with repeatedly(lambda: peak.sample(jvm), SAMPLE_SECONDS):
        yield peak
