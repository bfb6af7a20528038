"""Mutation testing: `python -m tests.mutation [--count 200] [--seed 1] [--package broker/log] [--jobs 2]`.

Changes one expression at a time in a copy of the working tree, and runs the unit and contract tests of its package. A
mutant that no test notices survives. The output lists the survivors: each is a missing test, or equivalent code. A
test that does not end detects the mutant.
"""

import argparse
import os
import queue
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutation.copies import ROOT
from tests.mutation.job import Job, Suite, TestsFail, Trial
from tests.mutation.mutants import mutants_of

BROKER = Suite(("tests/unit/broker",), ("tests/contract/proxy",))
PROXY = Suite(("tests/unit/proxy", "tests/unit/kafka_client"), ("tests/contract/proxy",))
SERDES = Suite(
    (
        "tests/unit/serdes",
        "tests/unit/columnar",
        "tests/unit/spark_udfs",
        "tests/contract/test_registry_client.py",
        "tests/contract/test_serdes.py",
        "tests/contract/test_serdes_golden.py",
    )
)
SUITES = {
    "broker/log": BROKER,
    "broker/state": BROKER,
    "kafka_client/producer": PROXY,
    "proxy/producers": PROXY,
    "registry/service": Suite(("tests/unit/registry", "tests/contract/registry")),
    "serdes": SERDES,
    "serdes/columnar": SERDES,
    "spark_udfs": SERDES,
}


def all_trials(packages: list[str]) -> Iterator[Trial]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if max((known for known in SUITES if name.startswith(f"{known}/")), key=len) == package:
                for mutant in mutants_of(path.read_text(encoding="utf-8")):
                    yield Trial(package, name, mutant)


class Run:
    """Tries mutants in parallel jobs, one suite after the other."""

    def __init__(self, jobs: int, *, contract: bool, progress: Progress) -> None:
        self._jobs = jobs
        self._contract = contract
        self._progress = progress
        self._task = progress.add_task("")
        self.survivors: list[Trial] = []

    def try_all(self, trials: list[Trial]) -> None:
        """Try mutants and collect the survivors. Raises TestsFail."""
        self._progress.update(self._task, total=len(trials))
        for suite in dict.fromkeys(SUITES[trial.package] for trial in trials):
            self._try_suite(suite, [trial for trial in trials if SUITES[trial.package] == suite])

    def _try_suite(self, suite: Suite, trials: list[Trial]) -> None:
        packages = sorted({trial.package for trial in trials})
        with ExitStack() as stack:
            free: queue.SimpleQueue[Job] = queue.SimpleQueue()
            for _ in range(min(self._jobs, len(trials))):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-mutants-"))).resolve()
                free.put(stack.enter_context(Job(folder, suite, packages)))
            self._progress.update(self._task, description=f"measuring {', '.join(suite.unit)}")
            first = free.get()
            measurement = first.measure()
            free.put(first)

            def attempt(trial: Trial) -> None:
                job = free.get()
                if not job.detects(trial, measurement, contract=self._contract):
                    self.survivors.append(trial)
                    self._progress.console.print(_line(trial), markup=False, soft_wrap=True)
                free.put(job)
                self._progress.update(self._task, advance=1, description=f"{len(self.survivors)} survived")

            with ThreadPoolExecutor(self._jobs) as pool:
                list(pool.map(attempt, trials))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", choices=SUITES, action="append", help="repeat it for several packages")
    parser.add_argument(
        "--file", action="append", default=[], help="only mutants of files with this text in their path"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants in parallel")
    parser.add_argument("--unit-only", action="store_true", help="do not run the contract tests")
    arguments = parser.parse_args()
    console = Console()
    found = [
        trial
        for trial in all_trials(arguments.package or list(SUITES))
        if not arguments.file or any(text in trial.path for text in arguments.file)
    ]
    trials = random.Random(arguments.seed).sample(found, min(arguments.count, len(found)))
    trials.sort(key=lambda trial: (trial.package, trial.path, trial.mutant.line))
    with Progress(console=console) as progress:
        run = Run(arguments.jobs, contract=not arguments.unit_only, progress=progress)
        try:
            run.try_all(trials)
        except TestsFail as error:
            console.print(f"Tests fail without a mutant: {error}")
            return 1
    console.print(f"{len(trials)} of {len(found)} mutants, seed {arguments.seed}")
    summarize(console, trials, run.survivors)
    return 0


def _line(trial: Trial) -> str:
    before, after = " ".join(trial.mutant.before.split()), trial.mutant.after
    return f"{trial.path}:{trial.mutant.line}: {before} -> {after}"


def summarize(console: Console, trials: list[Trial], survivors: list[Trial]) -> None:
    table = Table("package", "mutants", "detected", "survived")
    tried, survived = Counter(trial.package for trial in trials), Counter(trial.package for trial in survivors)
    for package, count in [*sorted(tried.items()), ("total", len(trials))]:
        left = survived[package] if package != "total" else len(survivors)
        table.add_row(package, str(count), f"{count - left} ({(count - left) / count:.0%})", str(left))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
