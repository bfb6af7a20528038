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
CPU_SAMPLE_SECONDS = 0.25
"""How much of a worker's time may go unseen where it ends while a contender runs."""
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


@dataclass(slots=True)
class CpuClock:
    """Processor seconds of a JVM and everything below it, of processes that have ended since as well.

    The driver's Python only waits; it is left out.
    """

    jvm: int
    _ticks: dict[tuple[int, str], int] = field(default_factory=dict)

    def seconds(self) -> float:
        for pid in (self.jvm, *below(self.jvm)):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                # A process id may be given again; with the time of the start it is of one process.
                self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])
        return sum(self._ticks.values()) / TICKS


@dataclass(slots=True)
class Metered:
    """A contender's work that notes, with each run, the processor time it took."""

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
    """Of all processes below the JVM together."""
    largest_python_mb: float = 0.0
    """Of one of them."""

    def sample(self, jvm: int) -> None:
        self.jvm_mb = max(self.jvm_mb, memory_bytes(jvm, "Rss") / MEGABYTE)
        # Workers are forked from one process: by their proportional shares, what they have in common counts once.
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
    """Call it again and again while the block runs, in a thread of its own."""
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
    """The peaks while the block runs."""
    peak = Peak()
    with repeatedly(lambda: peak.sample(jvm), SAMPLE_SECONDS):
        yield peak
