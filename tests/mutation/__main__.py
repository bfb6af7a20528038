"""Mutation testing: `python -m tests.mutation [--count 200] [--seed 1] [--only serdes]`.

Changes one expression at a time in a copy of the working tree, and runs the unit and contract tests of its package. A
mutant that no test notices survives. The summary lists the survivors: each is a missing test, or equivalent code.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutation.mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "broker/log": ("tests/unit/broker/log",),
    "broker/state": ("tests/unit/broker/groups", "tests/unit/broker/admin"),
    "proxy/producers": ("tests/unit/proxy/produce",),
    "registry/service": ("tests/contract/registry",),
    "serdes": ("tests/unit/serdes", "tests/contract/test_serdes.py", "tests/contract/test_registry_client.py"),
    "serdes/columnar": ("tests/unit/columnar",),
    "spark_udfs": ("tests/unit/spark_udfs",),
}
SECONDS_PER_BASELINE = 5
"""A mutant may run in an endless loop. It gets this multiple of the duration without a mutant."""


@dataclass(frozen=True, slots=True)
class Trial:
    package: str
    path: str
    mutant: Mutant


def all_trials(packages: list[str]) -> Iterator[Trial]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if max((known for known in TESTS if name.startswith(f"{known}/")), key=len) == package:
                for mutant in mutants_of(path.read_text(encoding="utf-8")):
                    yield Trial(package, name, mutant)


def copy_tree(folder: Path) -> None:
    """The files that git knows or would add, with the links of headgate/."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        if os.path.lexists(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def passes(folder: Path, package: str, seconds: float | None) -> bool:
    """Whether the tests of a package pass. False if one fails or the time is up."""
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *TESTS[package]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survives(folder: Path, trial: Trial, seconds: float) -> bool:
    target = folder / trial.path
    original = target.read_text(encoding="utf-8")
    try:
        _write(target, trial.mutant.text)
        return passes(folder, trial.package, seconds)
    finally:
        _write(target, original)


def _write(target: Path, text: str) -> None:
    """Replace a source file and remove its bytecode: Python compares only size and second."""
    target.write_text(text, encoding="utf-8")
    for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
        compiled.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=TESTS, action="append")
    arguments = parser.parse_args()
    console = Console()
    found = list(all_trials(arguments.only or list(TESTS)))
    trials = random.Random(arguments.seed).sample(found, min(arguments.count, len(found)))
    trials.sort(key=lambda trial: (trial.package, trial.path, trial.mutant.line))
    with tempfile.TemporaryDirectory(prefix="headgate-mutants-") as name:
        folder = Path(name)
        copy_tree(folder)
        limits: dict[str, float] = {}
        survivors: list[Trial] = []
        with Progress(console=console) as progress:
            task = progress.add_task(f"{len(trials)} of {len(found)} mutants", total=len(trials))
            for trial in trials:
                if trial.package not in limits:
                    begun = time.monotonic()
                    if not passes(folder, trial.package, None):
                        console.print(f"The tests of {trial.package} fail without a mutant.")
                        return 1
                    limits[trial.package] = 10 + SECONDS_PER_BASELINE * (time.monotonic() - begun)
                if survives(folder, trial, limits[trial.package]):
                    survivors.append(trial)
                progress.update(task, advance=1, description=f"{len(survivors)} survived, in {trial.path}")
    summarize(console, trials, survivors)
    return 0


def summarize(console: Console, trials: list[Trial], survivors: list[Trial]) -> None:
    for trial in survivors:
        before, after = " ".join(trial.mutant.before.split()), trial.mutant.after
        console.print(f"{trial.path}:{trial.mutant.line}: {before} -> {after}", markup=False, soft_wrap=True)
    table = Table("package", "mutants", "detected", "survived")
    tried, survived = Counter(trial.package for trial in trials), Counter(trial.package for trial in survivors)
    for package in tried:
        count, left = tried[package], survived[package]
        table.add_row(package, str(count), f"{count - left} ({(count - left) / count:.0%})", str(left))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
