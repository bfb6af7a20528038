"""One service in a child process, which tests can kill, pause and restart.

The child has a pipe as standard input and stops at its end. It therefore never outlives the test run.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.01
_LOG_TAIL_BYTES: Final = 4000
_LISTENING: Final = b"listening on "


class ServiceFailed(RuntimeError):
    """A service did not start or ended by itself. The message contains the end of its log."""


class Service:
    def __init__(
        self, name: str, address: str, options: Sequence[str], folder: Path, program: Sequence[str] = ()
    ) -> None:
        """`program` is the module to run and its first arguments. By default it is the package `name`."""
        self.name = name
        self.address = address
        module = program or [f"headgate.{name}"]
        self._command = [sys.executable, "-P", "-m", *module, "--stop-at-eof", "--listen", address, *options]
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def launch(self) -> None:
        """Start the process without waiting."""
        if self.is_running:
            return
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    def wait_until_ready(self) -> None:
        """Raises ServiceFailed."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while _LISTENING not in self._log.read_bytes():
            if not self.is_running or time.monotonic() > deadline:
                self.kill()
                tail = self._log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
                raise ServiceFailed(f"the {self.name} did not start on {self.address}. Its log ends with:\n{tail}")
            time.sleep(_POLL_SECONDS)

    def start(self) -> None:
        """Start the service, also after `kill` or `stop`. It keeps its address and data. Raises ServiceFailed."""
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """Stop cleanly. After a time limit, kill."""
        if self._process is None:
            return
        if self.is_running:
            self.resume()
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.kill()
        self._close()

    def kill(self) -> None:
        """`kill -9`: no clean-up, no flush."""
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait()
        self._close()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP). Clients see a server that does not respond."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(number)

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
