"""A pytest process that runs tests against mutants: `python -m tests.mutation.worker <descriptor> <packages> <tests>`.

It collects the tests once. For each mutant it forks, replaces the code of the changed functions in the child, and runs
the tests that the request names. It runs in a copy of the source tree.

- The request `measure` runs all tests. The response has the duration and the lines of each test.
- The request `path`, `original`, `text`, `tests`, `seconds` runs tests against a mutant. The response is `detected`.
"""

import gc
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from _pytest.main import pytest_runtestloop as run_tests

MEMORY_BYTES_MAX = 8 * 1024**3
"""Address space of a child. A mutant may allocate memory in an endless loop."""
POLL_SECONDS = 0.02


class Worker:
    """A pytest plugin that serves requests instead of running the collected tests."""

    def __init__(self, requests: socket.socket, packages: list[str]) -> None:
        self._requests = requests.makefile("rw", encoding="utf-8")
        self._folder = Path.cwd().resolve()
        self._sources = [str(self._folder / package / "*") for package in packages]
        self._imports = self._new_coverage()
        self._imports.start()

    def _new_coverage(self) -> coverage.Coverage:
        return coverage.Coverage(data_file=None, include=self._sources, config_file=False)

    def _name(self, file: str) -> str:
        return str(Path(file).resolve().relative_to(self._folder))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._imports.stop()
        functions = _functions_by_file(self._folder)
        for line in self._requests:
            request = json.loads(line)
            if "measure" in request:
                response = self._measure(session)
            else:
                response = {"detected": _detects(session, functions.get(request["path"], []), request)}
            self._requests.write(json.dumps(response) + "\n")
            self._requests.flush()
        return True

    def _measure(self, session: pytest.Session) -> dict[str, Any]:
        """Run every test with coverage, in a child process: this process stays as it is after collection."""
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(sender, "w") as pipe:
                json.dump(self._measured(session), pipe)
            os._exit(0)
        os.close(sender)
        with os.fdopen(receiver) as pipe:
            report: dict[str, Any] = json.load(pipe)
        os.waitpid(child, 0)
        return report

    def _measured(self, session: pytest.Session) -> dict[str, Any]:
        measured = self._new_coverage()
        clock = TestClock(measured)
        session.config.pluginmanager.register(clock)
        measured.start()
        passed = _pass(session, session.items)
        measured.stop()
        data, imports = measured.get_data(), self._imports.get_data()
        return {
            "passed": passed,
            "seconds": clock.seconds,
            "tests": {self._name(file): data.contexts_by_lineno(file) for file in data.measured_files()},
            "imported": {self._name(file): imports.lines(file) for file in imports.measured_files()},
        }


class TestClock:
    """Measures the processor time of each test, and separates the lines that each test runs."""

    __test__ = False

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._measured.switch_context(item.nodeid)
        begun = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - begun
        return result


def _detects(session: pytest.Session, functions: list[FunctionType], request: dict[str, Any]) -> bool:
    """Whether a test fails or the time is up. The tests run in a new process group."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        passed = False
        try:
            _patch(functions, request["original"], request["text"])
            items = {item.nodeid: item for item in session.items}
            passed = _pass(session, [items[name] for name in request["tests"]])
        finally:
            os._exit(0 if passed else 1)
    deadline = time.monotonic() + request["seconds"]
    status = None
    while status is None and time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = code
        else:
            time.sleep(POLL_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status != 0


def _pass(session: pytest.Session, items: list[pytest.Item]) -> bool:
    """Run tests until one fails."""
    session.items = items
    try:
        with suppress(session.Failed):
            run_tests(session)
    finally:
        session._setupstate.teardown_exact(None)
    return session.testsfailed == 0


def _functions_by_file(folder: Path) -> dict[str, list[FunctionType]]:
    """Return the functions of the source tree that exist after all imports."""
    found: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType:
            found.setdefault(each.__code__.co_filename, []).append(each)
    paths = {file: Path(file).resolve() for file in found if file.startswith(str(folder))}
    return {str(path.relative_to(folder)): found[file] for file, path in paths.items()}


def _patch(functions: list[FunctionType], original: str, text: str) -> None:
    """Replace the code of the functions with the code of the mutant."""
    if not functions:
        return
    file = functions[0].__code__.co_filename
    before, after = list(_codes(compile(original, file, "exec"))), list(_codes(compile(text, file, "exec")))
    assert [code.co_qualname for code in before] == [code.co_qualname for code in after]
    changed = {(old.co_qualname, old.co_firstlineno): new for old, new in zip(before, after, strict=True) if old != new}
    for function in functions:
        new = changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if new is not None:
            function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    worker = Worker(requests, sys.argv[2].split(","))
    sys.exit(pytest.main([*options, *sys.argv[3].split(",")], plugins=[worker]))


if __name__ == "__main__":
    main()
