"""Timing for all benchmarks: warm up, alternate the contenders, and compare them round by round.

Alternating matters more than repeating, because a slow second of the machine then affects both contenders. Each round
has a ratio of two consecutive runs. The report shows the median of these ratios, and each contender's median and best
round.

A benchmark builds a `Report`, calls `compare` for each question, and calls `write` to save the table in
`benchmarks/results/<name>.md`. Every comparison also prints a line for scripts:
`RESULT <metric> <ours> <peer> <ratio>`. A ratio above 1 means that ours is better.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Contender:
    """One implementation. `run` does all the work once. `work` is its number of units (rows, requests, bytes)."""

    name: str
    run: Callable[[], object]
    work: float
    prepare: Callable[[], object] = lambda: None
    """Called before each run. Its time is not measured."""


@dataclass(frozen=True, slots=True)
class Row:
    metric: str
    unit: str
    ours: float
    peer: float | None
    peer_name: str
    ratio: float | None
    note: str
    best: tuple[float, float] | None = None
    """The best round of ours and of the peer."""


def seconds_of(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def alternate(contenders: list[Contender], rounds: int, warm_ups: int) -> list[list[float]]:
    """Return the units per second of each contender's rounds.

    The contenders alternate, so that a slow moment of the machine affects all of them.
    """
    for contender in contenders:
        for _ in range(warm_ups):
            contender.prepare()
            contender.run()
    seconds: list[list[float]] = [[] for _ in contenders]
    for round_number in range(rounds):
        turn = range(len(contenders)) if round_number % 2 == 0 else range(len(contenders) - 1, -1, -1)
        for index in turn:
            contenders[index].prepare()
            seconds[index].append(seconds_of(contenders[index].run))
    return [[contender.work / taken for taken in times] for contender, times in zip(contenders, seconds, strict=True)]


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(slots=True)
class Report:
    name: str
    question: str
    rows: list[Row] = field(default_factory=list)

    def compare(
        self,
        metric: str,
        ours: Contender,
        peer: Contender,
        *,
        unit: str = "rows/s",
        rounds: int = 5,
        warm_ups: int = 1,
        note: str = "",
    ) -> float:
        """Time both contenders, print the RESULT line and add a row. Returns our rate divided by the peer's rate."""
        rates = alternate([ours, peer], rounds, warm_ups)
        return self.record_rounds(metric, *rates, unit=unit, peer_name=peer.name, note=note)

    def record_rounds(
        self,
        metric: str,
        ours: Sequence[float],
        peer: Sequence[float],
        *,
        unit: str,
        peer_name: str,
        higher_is_better: bool = True,
        note: str = "",
    ) -> float:
        """Add a row for the rounds of two contenders, in the order of the runs. Returns the median ratio."""
        ratios = [our / their if higher_is_better else their / our for our, their in zip(ours, peer, strict=True)]
        best = max if higher_is_better else min
        return self._keep(
            Row(
                metric,
                unit,
                statistics.median(ours),
                statistics.median(peer),
                peer_name,
                statistics.median(ratios),
                note,
                (best(ours), best(peer)),
            )
        )

    def record(
        self,
        metric: str,
        ours: float,
        peer: float,
        *,
        unit: str,
        peer_name: str,
        higher_is_better: bool = True,
        note: str = "",
    ) -> float:
        """Add a row for two values measured elsewhere (latencies, sizes). A ratio above 1 means that ours is better."""
        ratio = ours / peer if higher_is_better else peer / ours
        return self._keep(Row(metric, unit, ours, peer, peer_name, ratio, note))

    def _keep(self, row: Row) -> float:
        assert row.peer is not None
        assert row.ratio is not None
        self.rows.append(row)
        print(f"RESULT {row.metric} {row.ours:.6g} {row.peer:.6g} {row.ratio:.3f}", flush=True)
        return row.ratio

    def state(self, metric: str, value: float, unit: str, note: str = "") -> None:
        """Add a value without a peer (compile time, memory). Its RESULT line has `-` for peer and ratio."""
        self.rows.append(Row(metric, unit, value, None, "", None, note))
        print(f"RESULT {metric} {value:.6g} - -", flush=True)

    def write(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        lines = [
            f"# {self.name}",
            "",
            self.question,
            "",
            f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, "
            f"{os.cpu_count()} cores. Medians of alternating runs; a ratio is the median of the rounds' own.",
            "",
            "| metric | unit | ours | peer | against | ratio | best rounds | note |",
            "|---|---|---:|---:|---|---:|---|---|",
        ]
        for row in self.rows:
            ratio = "-" if row.ratio is None else f"{row.ratio:.2f}x"
            best = "-" if row.best is None else " / ".join(map(number, row.best))
            lines.append(
                f"| {row.metric} | {row.unit} | {number(row.ours)} | {number(row.peer)} | {row.peer_name or '-'} "
                f"| {ratio} | {best} | {row.note} |"
            )
        path = RESULTS / f"{self.name}.md"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
