"""Runs the Headgate REST proxy as users do: a child process on loopback."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

START_SECONDS_MAX = 60.0


class HeadgateProxy:
    def __init__(
        self,
        folder: Path,
        bootstrap_server: str,
        registry_url: str = "http://127.0.0.1:1",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self._bootstrap_server = bootstrap_server
        self._registry_url = registry_url
        self._settings = dict(settings or {})
        self.process: ServerProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        listen = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "headgate.proxy", "--listen", listen]
        command += ["--bootstrap-server", self._bootstrap_server, "--registry-url", self._registry_url]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        self.process = ServerProcess(command, self.folder / "proxy.log", cwd=ROOT)
        self.process.start(lambda: accepts(listen), START_SECONDS_MAX)

    def stop(self) -> int | None:
        return self.process.stop() if self.process is not None else None
