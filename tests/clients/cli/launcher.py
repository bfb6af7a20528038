"""Runs `headgate` in real processes without repeating its imports.

A launcher process imports everything once and forks for each command line. Each command has a separate memory, working
directory, environment and exit code, and separate descriptors. Tests without a launcher cover cold starts.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.live.installation import PYTHONPATH, ROOT

COMMAND_SECONDS_MAX = 60


class Launcher:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        paths = [self._folder / name for name in ("in", "out", "err")]
        paths[0].write_bytes(stdin)
        code = self.run_with(arguments, cwd, environment, paths)
        return code, paths[1].read_bytes(), paths[2].read_bytes()

    def run_with(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], paths: Sequence[Path]
    ) -> int:
        """Run a command whose standard streams are these files, for example a terminal. Returns the exit code."""
        order = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "environment": dict(environment),
            "paths": [str(path) for path in paths],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        # Buffered, as on most machines: the order of data and messages on a terminal depends on it.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.clients.cli.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**environment, "PYTHONPATH": PYTHONPATH},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=COMMAND_SECONDS_MAX)


def launch(order: Mapping[str, list[str] | str | dict[str, str]]) -> int:
    """Run a command in a forked process. Returns its exit code, or the negative number of the signal."""
    child = os.fork()
    if child == 0:
        _become(order)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _become(order: Mapping[str, object]) -> None:
    from headgate.gateway.cli.app import main

    paths, arguments, environment = order["paths"], order["arguments"], order["environment"]
    assert isinstance(paths, list)
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    signal.alarm(COMMAND_SECONDS_MAX)
    os.dup2(os.open(paths[0], os.O_RDONLY), 0)
    os.dup2(os.open(paths[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(os.open(paths[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.chdir(str(order["cwd"]))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["headgate", *arguments]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main_loop() -> None:
    import aiokafka  # noqa: F401
    import pydantic_settings  # noqa: F401

    import headgate.gateway.cli.consume_loop
    import headgate.gateway.cli.foreground
    import headgate.gateway.cli.produce_loop
    import headgate.kafka_client.admin.reset  # noqa: F401

    for line in sys.stdin:
        print(launch(json.loads(line)), flush=True)


if __name__ == "__main__":
    main_loop()
