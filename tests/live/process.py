"""Starts servers as child processes in their own process group. They never outlive the test run."""

import atexit
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.live.installation import PYTHONPATH

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0
LOG_TAIL_BYTES = 4000


def _tied_to_this_process() -> list[str]:
    """Return a command prefix that makes the kernel kill the child when this process dies without cleanup.

    The kernel watches the thread that starts the child, so the prefix works only in the main thread.
    The prefix keeps the process id of the child.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "KILL", "--"]


class ServerDied(RuntimeError):
    """The child exited or was not ready in time. The message ends with the tail of its log."""


class ServerProcess:
    """One child in its own process group. Its output goes to a file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.log = log
        self._cwd = cwd
        self._environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **(environment or {})}
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, ready: Callable[[], bool], seconds: float = START_SECONDS_MAX) -> None:
        with self.log.open("ab") as sink:
            self._child = subprocess.Popen(
                [*_tied_to_this_process(), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=self._cwd,
                env=self._environment,
                start_new_session=True,
            )
        atexit.register(self.kill)
        deadline = time.monotonic() + seconds
        while not ready():
            if self._child.poll() is not None:
                raise ServerDied(f"{self._describe()} ended with {self._child.returncode}: {self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerDied(f"{self._describe()} not ready in {seconds:.0f} s: {self.tail()}")
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        if self._child is None:
            raise ServerDied(f"{self._describe()} was never started")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> int | None:
        """Send SIGTERM, then SIGKILL after a timeout. Return the exit code, or None if no child was started."""
        if self._child is None:
            return None
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        atexit.unregister(self.kill)
        return self._child.returncode

    def kill(self) -> None:
        """Send SIGKILL to the whole process group."""
        if self._child is None or self._child.poll() is not None:
            return
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def tail(self) -> str:
        if not self.log.exists():
            return "(no log)"
        return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")

    def _describe(self) -> str:
        return Path(self.command[0]).name + " " + " ".join(self.command[-3:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
