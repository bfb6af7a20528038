"""A real browser: controls the system's headless Chromium over the DevTools protocol."""

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

NAMES = ("chromium", "chromium-headless-shell", "google-chrome")
START_SECONDS_MAX = 60.0
ANSWER_SECONDS_MAX = 30.0
# The sandbox does not work as root. Containers have little shared memory. The browser must not use external networks.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
)


class ChromiumUnavailable(RuntimeError):
    """No browser is installed."""


class Page:
    """One browser tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(ANSWER_SECONDS_MAX))
            if message.get("id") == number:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found

    def open(self, url: str) -> None:
        """Navigate to the URL and wait until the page is loaded."""
        assert not self.ask("Page.navigate", url=url).get("errorText"), url
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression. Awaits promises."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function with the arguments and return its result."""
        return self.run(f"({function})({', '.join(map(json.dumps, arguments))})")

    def wait_for(self, condition: str, seconds: float = ANSWER_SECONDS_MAX) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < deadline, f"{condition} did not come true"
            time.sleep(0.05)


class Chromium:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: ServerProcess | None = None

    def start(self) -> None:
        """Start the browser. Raises ChromiumUnavailable."""
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            raise ChromiumUnavailable("no chromium on this machine (make system installs it)")
        profile = f"--user-data-dir={self._folder / 'profile'}"
        command = [program, *FLAGS, profile, f"--remote-debugging-port={self._port}", "about:blank"]
        self._process = ServerProcess(command, self._folder / "chromium.log", environment={"HOME": str(self._folder)})
        self._process.start(lambda: accepts(f"127.0.0.1:{self._port}"), START_SECONDS_MAX)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Open a new tab and close it at the end."""
        here = f"http://127.0.0.1:{self._port}/json"
        made = httpx.put(f"{here}/new", timeout=ANSWER_SECONDS_MAX, trust_env=False).json()
        with connect(made["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
            yield Page(socket)
        httpx.get(f"{here}/close/{made['id']}", timeout=ANSWER_SECONDS_MAX, trust_env=False)

    def stop(self) -> None:
        if self._process is not None:
            # A browser is several processes, and none of them needs a clean shutdown.
            self._process.kill()
