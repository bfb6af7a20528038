"""Runs the Headgate registry as users do: a child process on loopback with its own data directory."""

import sys
from pathlib import Path

from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

START_SECONDS_MAX = 30.0


class HeadgateRegistry:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: ServerProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        listen = f"127.0.0.1:{self.port}"
        command = [
            sys.executable,
            "-m",
            "headgate.registry",
            "--listen",
            listen,
            "--data-dir",
            str(self.folder / "data"),
        ]
        self.process = ServerProcess(command, self.folder / "registry.log", cwd=ROOT)
        self.process.start(lambda: accepts(listen), START_SECONDS_MAX)

    def stop(self) -> int | None:
        return self.process.stop() if self.process is not None else None
