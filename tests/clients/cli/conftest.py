"""Runs the `headgate` command in separate processes against a live broker."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.cli.launcher import Launcher
from tests.clients.cli.terminal import terminal
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import PYTHONPATH

SECONDS_MAX = 60.0
HEADGATE = (sys.executable, "-m", "headgate")


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a plain table without the header row."""
        return [line.split() for line in self.lines[1:]]


class Cli:
    """Runs each command line in a separate process. If there is a launcher, it forks the process."""

    def __init__(self, address: str, folder: Path, launcher: Launcher | None = None) -> None:
        self.address = address
        self.folder = folder
        self._launcher = launcher

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("HEADGATE_", "XDG_"))}
        return {
            **clean,
            "HEADGATE_BOOTSTRAP_SERVER": self.address,
            "HOME": str(self.folder),
            "PYTHONPATH": PYTHONPATH,
        }

    def __call__(self, *arguments: str, stdin: bytes = b"", code: int = 0, **environment: str) -> Done:
        everything = self.environment | environment
        if self._launcher is not None:
            got, out, err = self._launcher.run(arguments, self.folder, everything, stdin)
        else:
            done = subprocess.run(
                [*HEADGATE, *arguments],
                input=stdin,
                capture_output=True,
                timeout=SECONDS_MAX,
                check=False,
                cwd=self.folder,
                env=everything,
            )
            got, out, err = done.returncode, done.stdout, done.stderr
        assert got == code, (arguments, got, out, err.decode())
        return Done(got, out, err.decode())

    def on_terminal(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """The text that the command writes to a terminal."""
        launcher = self._launcher
        assert launcher is not None
        with terminal() as screen:
            paths = [Path(screen.path)] * 3
            everything = self.environment | {"TERM": "xterm"} | environment
            got, shown = screen.during(lambda: launcher.run_with(arguments, self.folder, everything, paths))
        assert got == code, (arguments, got, shown)
        return shown

    def start(self, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*HEADGATE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment,
        )


@pytest.fixture(scope="session")
def cli(headgate_broker: HeadgateBroker, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(headgate_broker.address, tmp_path_factory.mktemp("cli"), launcher)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def schemas(cli: Cli, registry: str) -> Cli:
    """The command line with the registry's address."""

    class WithRegistry(Cli):
        @property
        def environment(self) -> dict[str, str]:
            return super().environment | {"HEADGATE_REGISTRY_URL": registry}

    return WithRegistry(cli.address, cli.folder, cli._launcher)
