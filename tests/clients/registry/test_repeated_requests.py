"""Fast path for repeated requests: it is never used for other requests or stale responses."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryProcess, running_registry


class Wire:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = b""

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        while b"\r\n\r\n" not in self._left:
            self._more()
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers["content-length"])
        while len(self._left) < length:
            self._more()
        body, self._left = self._left[:length], self._left[length:]
        return int(status.split()[1]), headers, body

    def _more(self) -> None:
        received = self._connection.recv(65536)
        assert received, "the registry closed the connection"
        self._left += received

    def closed(self) -> bool:
        return self._connection.recv(1) == b""


@contextmanager
def connected(live: RegistryProcess) -> Iterator[Wire]:
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
        yield Wire(connection)


@pytest.fixture
def subject(live: RegistryProcess, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    httpx.post(f"{live.url}/subjects/{name}/versions", json={"schema": record("a")}).raise_for_status()
    return name


def get(subject: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"GET /subjects/{subject}/versions/latest HTTP/{version}", "Host: 127.0.0.1", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_identical_bytes_get_the_same_response_until_it_changes(live: RegistryProcess, subject: str) -> None:
    with connected(live) as wire:
        for _ in range(5):
            wire.send(get(subject))
            status, headers, body = wire.answer()
            assert (status, json.loads(body)["version"]) == (200, 1)
            assert headers["content-type"] == "application/vnd.schemaregistry.v1+json"
        schema = {"schema": record("a", defaulted("b"))}
        httpx.post(f"{live.url}/subjects/{subject}/versions", json=schema).raise_for_status()
        for _ in range(3):
            wire.send(get(subject))
            assert json.loads(wire.answer()[2])["version"] == 2
        httpx.delete(f"{live.url}/subjects/{subject}").raise_for_status()
        wire.send(get(subject))
        assert wire.answer()[0] == 404


def test_every_header_is_part_of_the_key(live: RegistryProcess, subject: str) -> None:
    with connected(live) as wire:
        for media in ("application/json", "application/vnd.schemaregistry.v1+json") * 3:
            wire.send(get(subject, f"Accept: {media}"))
            assert wire.answer()[1]["content-type"] == media
        for _ in range(2):
            wire.send(get(subject, "Accept: text/html"))
            assert wire.answer()[0] == 406


def test_split_and_pipelined_requests_get_responses_in_order(live: RegistryProcess, subject: str) -> None:
    with connected(live) as wire:
        for _ in range(3):
            wire.send(get(subject))
            assert wire.answer()[0] == 200
        wire.send(get(subject) * 3)
        assert [wire.answer()[0] for _ in range(3)] == [200] * 3
        whole = get(subject)
        for cut in (1, 10, len(whole) - 2):
            wire.send(whole[:cut])
            wire.send(whole[cut:])
            assert wire.answer()[0] == 200
        wire.send(get(subject) + get(subject)[:20])
        assert wire.answer()[0] == 200
        wire.send(get(subject)[20:])
        assert wire.answer()[0] == 200


def test_connection_close_is_respected(live: RegistryProcess, subject: str) -> None:
    for request in (get(subject, "Connection: close"), get(subject, version="1.0")):
        for _ in range(3):
            with connected(live) as wire:
                wire.send(request)
                assert wire.answer()[0] == 200
                assert wire.closed()


def test_repeated_registrations_use_the_fast_path(live: RegistryProcess, subject: str) -> None:
    body = json.dumps({"schema": record("a")})
    head = f"POST /subjects/{subject}/versions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    with connected(live) as wire:
        for _ in range(4):
            wire.send(request)
            status, _, answered = wire.answer()
            assert (status, json.loads(answered)["version"]) == (200, 1)
        httpx.delete(f"{live.url}/subjects/{subject}").raise_for_status()
        wire.send(request)
        assert json.loads(wire.answer()[2])["version"] == 2


def test_repeated_requests_of_allowed_origins_get_cors_headers(tmp_path: Path) -> None:
    origin = "https://app.example"
    with running_registry(tmp_path, "--set", f"access.control.allow.origin={origin}") as live:
        schema = {"schema": record("a")}
        httpx.post(f"{live.url}/subjects/cors/versions", json=schema).raise_for_status()
        with connected(live) as wire:
            for _ in range(4):
                wire.send(get("cors", f"Origin: {origin}"))
                assert wire.answer()[1]["access-control-allow-origin"] == origin
