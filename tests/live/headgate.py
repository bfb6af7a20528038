"""Runs the Headgate broker as users do: a child process on loopback with its own data directory."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

START_SECONDS_MAX = 30.0


class HeadgateBroker:
    """One broker. Tests can stop, kill and restart it on the same data and port."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = port or free_port()
        self._settings = dict(settings or {})
        self.process: ServerProcess | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "headgate.broker", "--data-dir", str(self.data), "--listen", self.address]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        self.process = ServerProcess(command, self.folder / "broker.log", cwd=ROOT)
        self.process.start(lambda: accepts(self.address), START_SECONDS_MAX)

    def stop(self) -> int | None:
        return self.process.stop() if self.process is not None else None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
