"""Invalid request heads for the registry: too long or endless."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.headgate_registry import HeadgateRegistry

SECONDS_MAX = 20.0
FLOOD_BYTES = 60 * 1024 * 1024
# Far above the memory of a response, far below the size of the flood.
GROWTH_MB_MAX = 40
HEADERS = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 90) for number in range(1000))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    httpx.get(f"{process.url}/subjects", timeout=SECONDS_MAX).raise_for_status()
    yield process
    process.stop()


def exchange(registry: HeadgateRegistry, request: bytes) -> bytes:
    """Send a request and read until the registry closes the connection."""
    host, _, port = registry.url.removeprefix("http://").partition(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection:
        with contextlib.suppress(OSError):  # the registry may have responded and closed the connection already
            connection.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(65536):
                answer += data
    return answer


def memory_mb(registry: HeadgateRegistry) -> float:
    assert registry.process is not None
    return int(Path(f"/proc/{registry.process.pid}/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.mark.parametrize(
    "head",
    [
        b"GET /subjects HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"GET /subjects?" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /subjects HTTP/1.1\r\nHost: 127.0.0.1\r\n" + HEADERS + b"\r\n",
    ],
    ids=["a header", "an address", "a thousand headers"],
)
def test_a_head_over_the_limit_is_refused(registry: HeadgateRegistry, head: bytes) -> None:
    answer = exchange(registry, head)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer
    if answer:
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 431


def test_headers_without_end_cost_no_memory_and_others_are_served(registry: HeadgateRegistry) -> None:
    before = memory_mb(registry)
    pieces = FLOOD_BYTES // len(HEADERS)
    exchange(registry, b"GET /subjects HTTP/1.1\r\nHost: 127.0.0.1\r\n" + HEADERS * pieces)
    assert memory_mb(registry) - before < GROWTH_MB_MAX
    assert httpx.get(f"{registry.url}/subjects", timeout=SECONDS_MAX).json() == []
