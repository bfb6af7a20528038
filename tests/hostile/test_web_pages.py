"""Requests that a web page can make a browser send: other origins, rebound names, bodies without a media type.

The tests write raw bytes, because client libraries do not send such requests.
"""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry

SECONDS_MAX = 20.0
SCHEMA = b'{"schema": "\\"string\\""}'
RECORDS = b'{"records": [{"value": "aGk="}]}'


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def proxy(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateProxy]:
    server = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address)
    server.start()
    yield server
    assert server.stop() == 0


def answer(port: int, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, str]:
    """Status and message of the response to a request with exactly these headers."""
    given = dict(headers)
    if body:
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            data = connection.recv(65536)
            assert data, received
            received += data
        head, _, rest = received.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        length = next(
            (int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")), 0
        )
        while len(rest) < length:
            rest += connection.recv(65536)
    return status, json.loads(rest).get("message", "") if status >= 400 else ""


def own(port: int) -> dict[str, str]:
    return {"Host": f"127.0.0.1:{port}"}


@pytest.mark.parametrize("media", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_bodies_that_need_no_preflight_write_nothing(
    registry: HeadgateRegistry, proxy: HeadgateProxy, media: str | None
) -> None:
    headers = {} if media is None else {"Content-Type": media}
    cluster = httpx.get(f"{proxy.url}/v3/clusters", timeout=SECONDS_MAX).json()["data"][0]["cluster_id"]
    requests = [
        (registry.port, "POST", "/subjects/forged/versions", SCHEMA),
        (registry.port, "PUT", "/config", b'{"compatibility": "NONE"}'),
        (registry.port, "POST", "/import", b"{}"),
        (proxy.port, "POST", "/topics/forged", RECORDS),
        (proxy.port, "POST", "/admin/topics", b'{"topic_name": "forged"}'),
        (proxy.port, "POST", "/consumers/forged", b'{"name": "forged"}'),
        (proxy.port, "POST", f"/v3/clusters/{cluster}/topics", b'{"topic_name": "forged"}'),
        (
            proxy.port,
            "POST",
            f"/v3/clusters/{cluster}/topics/forged/records",
            b'{"value": {"type": "JSON", "data": 1}}',
        ),
        (proxy.port, "POST", f"/v3/clusters/{cluster}/topics/forged/records:batch", b'{"entries": []}'),
    ]
    for port, method, path, body in requests:
        status, message = answer(port, method, path, {**own(port), **headers}, body)
        assert status == 415, (path, message)
        assert "application/" in message
    assert httpx.get(f"{registry.url}/subjects", timeout=SECONDS_MAX).json() == []
    assert "forged" not in httpx.get(f"{proxy.url}/topics", timeout=SECONDS_MAX).json()


def test_a_rebound_name_is_not_served(registry: HeadgateRegistry, proxy: HeadgateProxy) -> None:
    for server, path in ((registry, "/subjects"), (proxy, "/topics")):
        for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"}):
            headers["Origin"] = f"http://{headers['Host']}"
            for method, place in (("GET", path), ("DELETE", f"{path}/x"), ("OPTIONS", path)):
                status, message = answer(server.port, method, place, headers)
                assert status == 421
                assert "allowed.hosts" in message
        assert answer(server.port, "GET", path, {"Host": f"localhost:{server.port}"})[0] == 200


def test_cached_responses_are_not_sent_to_a_rebound_name(registry: HeadgateRegistry) -> None:
    body = {"schema": '"string"'}
    httpx.post(f"{registry.url}/subjects/kept/versions", json=body, timeout=SECONDS_MAX).raise_for_status()
    try:
        for _ in range(3):
            assert answer(registry.port, "GET", "/schemas/ids/1", own(registry.port))[0] == 200
            assert answer(registry.port, "GET", "/schemas/ids/1", {"Host": "evil.example"})[0] == 421
            foreign = {**own(registry.port), "Origin": "https://evil.example"}
            assert answer(registry.port, "GET", "/schemas/ids/1", foreign)[0] == 403
    finally:
        for query in ("", "?permanent=true"):
            httpx.delete(f"{registry.url}/subjects/kept{query}", timeout=SECONDS_MAX).raise_for_status()


def test_a_request_without_a_host_is_rejected(registry: HeadgateRegistry, proxy: HeadgateProxy) -> None:
    for server, path in ((registry, "/subjects"), (proxy, "/topics")):
        assert answer(server.port, "GET", path, {}) == (400, "The request has no Host header.")
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1"])
def test_pages_of_other_origins_are_rejected(registry: HeadgateRegistry, proxy: HeadgateProxy, origin: str) -> None:
    for server, path in ((registry, "/subjects"), (proxy, "/topics")):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            status, message = answer(server.port, method, path, {**own(server.port), "Origin": origin})
            assert status == 403
            assert "access.control.allow.origin" in message
        same = {**own(server.port), "Origin": server.url}
        assert answer(server.port, "GET", path, same)[0] == 200


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("evil.example", "http://evil.example", 421),
        (None, None, 400),
        ("localhost", "http://evil.example", 403),
        ("localhost:1", "http://localhost:1", 101),
        ("localhost", None, 101),
    ],
)
def test_websockets_check_host_and_origin(
    proxy: HeadgateProxy, host: str | None, origin: str | None, expected: int
) -> None:
    cluster = httpx.get(f"{proxy.url}/v3/clusters", timeout=SECONDS_MAX).json()["data"][0]["cluster_id"]
    for way in ("produce", "consume"):
        headers = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
        }
        if host is not None:
            headers["Host"] = host
        if origin is not None:
            headers["Origin"] = origin
        path = f"/v3/clusters/{cluster}/topics/forged/records:{way}"
        assert answer(proxy.port, "GET", path, headers)[0] == expected
    # A page must not be able to fill the log.
    assert proxy.process is not None
    assert "handshake" not in proxy.process.log.read_text()


def test_the_error_names_an_invalid_setting(tmp_path: Path) -> None:
    server = HeadgateProxy(tmp_path, "127.0.0.1:1", settings={"allowed.hosts": "https://gateway.example"})
    with pytest.raises(RuntimeError, match=r"ended with 2: .*allowed\.hosts: 'https://gateway\.example' is not valid"):
        server.start()
