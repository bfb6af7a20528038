"""A registry for tests: in this process without sockets, or as a child process."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from headgate.registry.api import create_app
from headgate.registry.api.server import open_registry
from headgate.registry.settings import RegistrySettings

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0


class RegistryApi:
    """Sends requests to the ASGI application directly, on an event loop in a separate thread."""

    def __init__(self, data_dir: Path, settings: RegistrySettings | None = None) -> None:
        self.registry = open_registry(data_dir, settings)
        self.front = create_app(self.registry)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.front, raise_app_exceptions=False),
            base_url="http://localhost",
        )

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["content"] = body if isinstance(body, bytes) else json.dumps(body).encode()
            options.setdefault("headers", {"content-type": "application/vnd.schemaregistry.v1+json"})
        request = self._client.request(method, path, **options)
        return asyncio.run_coroutine_threadsafe(request, self._loop).result(60)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.send("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.send("PUT", path, body, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.send("DELETE", path, **options)

    def register(self, subject: str, schema: Any, **fields: Any) -> int:
        """Register a schema, check for success and return its id."""
        answer = self.try_register(subject, schema, **fields)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])

    def try_register(self, subject: str, schema: Any, *, query: str = "", **fields: Any) -> httpx.Response:
        text = schema if isinstance(schema, str) or schema is None else json.dumps(schema)
        body = {"schema": text, **fields}
        if text is None:
            del body["schema"]
        return self.post(f"/subjects/{subject}/versions{query}", body)

    def config(self, scope: str = "", **changes: Any) -> None:
        answer = self.put(f"/config/{scope}" if scope else "/config", changes)
        assert answer.status_code == 200, answer.text

    def mode(self, mode: str | None, scope: str = "", query: str = "") -> httpx.Response:
        return self.put((f"/mode/{scope}" if scope else "/mode") + query, {"mode": mode})

    def close(self) -> None:
        async def finish() -> None:
            await self._client.aclose()

        asyncio.run_coroutine_threadsafe(finish(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.registry.store.close()


def error_of(answer: httpx.Response) -> tuple[int, int]:
    """Return the HTTP status and error code of an error response."""
    return answer.status_code, answer.json()["error_code"]


def free_port() -> int:
    """Return a free port below 32768, outside the ephemeral port range."""
    for port in range(20000 + os.getpid() % 5000, 32768):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port below 32768")


class RegistryProcess:
    """Runs the registry as a child process on a data directory. `kill` sends SIGKILL."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        self._arguments = arguments
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "headgate.registry",
                "--listen",
                f"127.0.0.1:{self.port}",
                "--data-dir",
                str(self.data_dir),
                *self._arguments,
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            assert self._process.poll() is None, "the registry stopped at once"
            try:
                httpx.get(f"{self.url}/health", timeout=5).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError("the registry did not start")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def terminate(self) -> None:
        """Send SIGTERM and return immediately."""
        assert self._process is not None
        self._process.terminate()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)


@contextmanager
def running_registry(data_dir: Path, *arguments: str) -> Iterator[RegistryProcess]:
    process = RegistryProcess(data_dir, *arguments)
    process.start()
    try:
        yield process
    finally:
        process.stop()
