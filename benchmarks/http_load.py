"""Measures requests per second over 32 keep-alive connections.

Uses wrk if it is installed, else a small asyncio client. Above about 20,000 responses per second, the asyncio client
is the bottleneck.
"""

import asyncio
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

CONNECTIONS = 32
HAS_WRK = shutil.which("wrk") is not None

_LUA = """
wrk.method = "{method}"
wrk.headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
local number = {first}
request = function()
  number = number + 1
  local path = string.gsub("{path}", "NUMBER", number)
  local body = string.gsub([==[{body}]==], "NUMBER", number)
  return wrk.format(nil, path, nil, body)
end
"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `NUMBER` in path and body is a counter that starts at `first`, so that all requests differ."""

    method: str
    path: str
    body: str = ""
    first: int = 0

    @property
    def counts(self) -> bool:
        return "NUMBER" in self.path + self.body

    def bytes_of(self, number: int, host: str) -> bytes:
        path = self.path.replace("NUMBER", str(number))
        body = self.body.replace("NUMBER", str(number)).encode()
        head = f"{self.method} {path} HTTP/1.1\r\nHost: {host}\r\n"
        if body:
            head += f"Content-Type: application/vnd.schemaregistry.v1+json\r\nContent-Length: {len(body)}\r\n"
        return f"{head}\r\n".encode() + body


def rate(url: str, request: Request, seconds: float) -> float:
    """Return the responses per second. Any response other than 2xx raises an error."""
    return _wrk(url, request, seconds) if HAS_WRK else asyncio.run(_own(url, request, seconds))


def _wrk(url: str, request: Request, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        if request.counts:
            text = _LUA
        else:
            text = 'wrk.method = "{method}"\nwrk.body = [==[{body}]==]\n'
            text += 'wrk.headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"\n'
        for name in ("method", "path", "body", "first"):
            text = text.replace(f"{{{name}}}", str(getattr(request, name)))
        script.write_text(text)
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "-s", str(script), url + request.path]
        if request.method == "GET":
            command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", url + request.path]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told:
        raise RuntimeError(told)
    found = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert found is not None, told
    return float(found.group(1))


async def _own(url: str, request: Request, seconds: float) -> float:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    until = time.perf_counter() + seconds
    number = request.first
    answered = 0

    def next_bytes() -> bytes:
        nonlocal number
        number += 1
        return request.bytes_of(number, address.netloc)

    async def connection(ask: Callable[[], bytes]) -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        fixed = b"" if request.counts else ask()
        while time.perf_counter() < until:
            writer.write(fixed or ask())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(head.decode())
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            answered += 1
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(connection(next_bytes) for _ in range(CONNECTIONS)))
    return answered / (time.perf_counter() - started)
