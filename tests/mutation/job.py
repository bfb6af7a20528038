"""Runs tests against mutants in one copy of the source tree.

A mutant inside a function meets the tests that run its statement, in a fork of the worker (`tests.mutation.worker`). A
mutant of code that runs at import meets all unit tests of its package, in a new process. A mutant of compiled code
meets the tests in the files whose tests compile it, in a new process. A survivor also meets the contract tests of its
package.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.mutation.copies import copy_tree, environment
from tests.mutation.mutants import Mutant

OPTIONS = ("-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow")
SECONDS_MIN = 20
SECONDS_PER_CPU_SECOND = 20
"""A mutant may run in an endless loop. Its tests get this multiple of the processor time that they need without it."""
CONTRACT_SECONDS_MAX = 600


COMPILED = "serdes/columnar/native/word_overloads.py"
"""Functions that run only as machine code. No coverage tool sees their lines."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of some packages."""

    unit: tuple[str, ...]
    """Unit tests, and contract tests without other processes. Only those that run the changed statement are tried."""
    contract: tuple[str, ...] = ()
    """Contract tests that start servers. A survivor of the others meets all of them."""


@dataclass(frozen=True, slots=True)
class Trial:
    package: str
    path: str
    mutant: Mutant


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the unit tests do without a mutant."""

    seconds: dict[str, float]
    """Processor time by test."""
    tests: dict[str, dict[str, list[str]]]
    """The tests that run each line, by file."""
    imported: dict[str, list[int]]
    """Lines that run at import, by file."""

    def selection(self, trial: Trial) -> tuple[list[str], bool]:
        """Return the tests that may detect a mutant, fastest first, and whether they need a new process."""
        by_line, statement = self.tests.get(trial.path, {}), trial.mutant.statement
        if any(line in statement for line in self.imported.get(trial.path, ())):
            related = {test for tests in by_line.values() for test in tests}
            return sorted(self.seconds, key=lambda test: (test not in related, self.seconds[test])), True
        found = {test for line in statement for test in by_line.get(str(line), ())}
        if not found and trial.path == COMPILED:
            # Only the first test that compiles a function runs the Python code around it.
            files = {test.partition("::")[0] for tests in by_line.values() for test in tests if test}
            related = {test for test in self.seconds if test.partition("::")[0] in files}
            return sorted(related, key=lambda test: self.seconds[test]), True
        return sorted(found & self.seconds.keys(), key=lambda test: self.seconds[test]), False

    def limit_seconds(self, tests: list[str]) -> float:
        return SECONDS_MIN + SECONDS_PER_CPU_SECOND * sum(self.seconds[test] for test in tests)


class TestsFail(Exception):
    """The tests fail without a mutant."""

    __test__ = False


class Job:
    """A copy of the source tree and a worker that has collected the unit tests of a suite."""

    def __init__(self, folder: Path, suite: Suite, packages: list[str]) -> None:
        self._folder = folder
        self._suite = suite
        copy_tree(folder)
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [str(theirs.fileno()), ",".join(packages), ",".join(suite.unit)]
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "tests.mutation.worker", *arguments],
                cwd=folder,
                env=environment(folder),
                pass_fds=[theirs.fileno()],
                stdout=subprocess.DEVNULL,
            )
        self._requests = ours.makefile("rw", encoding="utf-8")
        ours.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        self._worker.wait()

    def measure(self) -> Measurement:
        """Run the unit tests without a mutant. Raises TestsFail."""
        response = self._ask({"measure": True})
        if not response.pop("passed"):
            raise TestsFail(", ".join(self._suite.unit))
        return Measurement(**response)  # type: ignore[arg-type]

    def detects(self, trial: Trial, measurement: Measurement, *, contract: bool) -> bool:
        tests, needs_process = measurement.selection(trial)
        seconds = measurement.limit_seconds(tests)
        if not needs_process and tests and self._worker_detects(trial, tests, seconds):
            return True
        with self._changed_file(trial):
            return (needs_process and self._fails(tests, seconds)) or (
                contract and bool(self._suite.contract) and self._fails_contract()
            )

    @contextmanager
    def _changed_file(self, trial: Trial) -> Iterator[None]:
        target = self._folder / trial.path
        original = target.read_text(encoding="utf-8")
        target.write_text(trial.mutant.text, encoding="utf-8")
        try:
            yield
        finally:
            target.write_text(original, encoding="utf-8")

    def _worker_detects(self, trial: Trial, tests: list[str], seconds: float) -> bool:
        """Whether a test fails in the worker. The file keeps its content, so cached machine code stays valid."""
        original, text = (self._folder / trial.path).read_text(encoding="utf-8"), trial.mutant.text
        request = {"path": trial.path, "original": original, "text": text, "tests": tests, "seconds": seconds}
        return bool(self._ask(request)["detected"])

    def _fails_contract(self) -> bool:
        return self._fails(list(self._suite.contract), CONTRACT_SECONDS_MAX)

    def _fails(self, tests: list[str], seconds: float) -> bool:
        """Whether a test fails in a new process, or the time is up."""
        names = self._folder / "mutation-tests"
        names.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"@{names}"]
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=environment(self._folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def _ask(self, request: dict[str, object]) -> dict[str, object]:
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        response: dict[str, object] = json.loads(self._requests.readline())
        return response
