"""What a Spark session costs: processor time and memory of its JVM and of the Python workers below it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

SAMPLE_SECONDS = 0.05
MEGABYTE = 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")


def jvm_of(spark: SparkSession) -> int:
    """Its process id."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def below(pid: int) -> list[int]:
    """The processes that descend from one: below a session's JVM, Python's daemon and the workers it forks."""
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


def cpu_seconds(jvm: int) -> float:
    """Of the JVM, the workers that live and those that have ended. The driver's Python only waits; it is left out."""
    ticks = 0
    for pid in (jvm, *below(jvm)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


@dataclass(slots=True)
class Metered:
    """A contender's work that notes, with each run, the processor time it took."""

    jvm: int
    run: Callable[[], object]
    rows: int
    cpu_us_per_row: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        before = cpu_seconds(self.jvm)
        self.run()
        self.cpu_us_per_row.append((cpu_seconds(self.jvm) - before) / self.rows * 1e6)


@dataclass(slots=True)
class Peak:
    jvm_mb: float = 0.0
    python_mb: float = 0.0

    def sample(self, jvm: int) -> None:
        self.jvm_mb = max(self.jvm_mb, memory_bytes(jvm, "Rss") / MEGABYTE)
        # Workers are forked from one process: by their proportional shares, what they have in common counts once.
        self.python_mb = max(self.python_mb, sum(memory_bytes(pid, "Pss") for pid in below(jvm)) / MEGABYTE)


def memory_bytes(pid: int, kind: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def watched(jvm: int) -> Iterator[Peak]:
    """The peaks while the block runs."""
    peak, is_done = Peak(), Event()

    def watch() -> None:
        while not is_done.wait(SAMPLE_SECONDS):
            peak.sample(jvm)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        is_done.set()
        watcher.join()
