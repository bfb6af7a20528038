"""Hostile connections: endless heads, floods of requests, half-closed sockets, invalid frames."""

import asyncio
import base64
import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from headgate.web import http_protocol
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.installation import ROOT
from tests.live.ports import free_port

SECONDS_MAX = 20.0
GET = b"GET /topics/no-such-topic HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CHUNKED = (
    b"POST /topics/t HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
HEADERS = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 90) for number in range(1000))
# The memory limit is far above the need of a response and far below the size of the flood.
FLOOD_BYTES = 60 * 1024 * 1024
GROWTH_MB_MAX = 40


@pytest.fixture(scope="module")
def proxy(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateProxy]:
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address)
    proxy.start()
    httpx.get(f"{proxy.url}/topics", timeout=SECONDS_MAX).raise_for_status()
    yield proxy
    assert proxy.stop() == 0
    assert proxy.process is not None
    told = proxy.process.log.read_text()
    # uvicorn logs a traceback for frames that are not UTF-8, so look only for files of the proxy.
    assert f'File "{ROOT}/proxy/' not in told
    assert "Unclosed" not in told


def connection(proxy: HeadgateProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=SECONDS_MAX)


def rest(open_socket: socket.socket) -> bytes:
    """Read until the peer closes the connection."""
    answer = b""
    while True:
        try:
            data = open_socket.recv(65536)
        except ConnectionResetError:
            return answer
        if not data:
            return answer
        answer += data


def exchange(proxy: HeadgateProxy, request: bytes) -> bytes:
    with connection(proxy) as open_socket:
        with contextlib.suppress(OSError):  # the proxy may have responded and closed the connection already
            open_socket.sendall(request)
        return rest(open_socket)


def memory_mb(proxy: HeadgateProxy) -> float:
    assert proxy.process is not None
    return int(Path(f"/proc/{proxy.process.pid}/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.mark.parametrize(
    "head",
    [
        b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"GET /topics?" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + HEADERS + b"\r\n",
    ],
    ids=["a header", "an address", "a thousand headers"],
)
def test_a_head_over_the_limit_is_rejected(proxy: HeadgateProxy, head: bytes) -> None:
    answer = exchange(proxy, head)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer
    if answer:
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 431


def test_a_thousand_short_headers_are_accepted(proxy: HeadgateProxy) -> None:
    many = b"".join(b"x-%d: 1\r\n" % number for number in range(1000))
    answer = exchange(proxy, b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + many + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\n", HEADERS),
        (b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"y" * 100_000),
        (b"GET /topics?", b"y" * 100_000),
        (CHUNKED + b"5;", b"y" * 100_000),
        (CHUNKED + b"0\r\n", HEADERS),
        (CHUNKED + b"0\r\nX: ", b"y" * 100_000),
        (b"", GET * 1000),
    ],
    ids=["headers", "a header", "an address", "an extension", "trailers", "a trailer", "requests"],
)
def test_a_flood_of_requests_uses_limited_memory(proxy: HeadgateProxy, start: bytes, piece: bytes) -> None:
    before = memory_mb(proxy)
    with connection(proxy) as open_socket:
        open_socket.settimeout(2.0)  # the test reads no responses, so sending may also block
        with pytest.raises(OSError, match=r"reset|pipe|timed out"):
            open_socket.sendall(start + piece * (FLOOD_BYTES // len(piece)))
    assert memory_mb(proxy) - before < GROWTH_MB_MAX
    assert httpx.get(f"{proxy.url}/topics", timeout=SECONDS_MAX).status_code == 200


def test_pipelined_requests_get_responses_in_order(proxy: HeadgateProxy) -> None:
    requests = b"".join(b"GET /topics/none-%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % number for number in range(199))
    answer = exchange(proxy, requests + b"GET /healthy HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"404"] * 199 + [b"204"]


def test_requests_before_invalid_data_get_responses(proxy: HeadgateProxy) -> None:
    answer = exchange(proxy, GET * 3 + b"\x00nonsense\r\n\r\n")
    assert answer.count(b"HTTP/1.1 404") == 3
    assert exchange(proxy, b"\x00nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_an_invalid_chunk_ends_the_request(proxy: HeadgateProxy) -> None:
    assert exchange(proxy, CHUNKED + b"zz\r\n").startswith(b"HTTP/1.1 400")
    cluster_id = httpx.get(f"{proxy.url}/v3/clusters", timeout=SECONDS_MAX).json()["data"][0]["cluster_id"]
    record = b'{"value":{"type":"JSON","data":1}}'
    with connection(proxy) as open_socket:
        head = CHUNKED.replace(b"/topics/t", f"/v3/clusters/{cluster_id}/topics/chunks/records".encode())
        open_socket.sendall(head + b"%x\r\n%b\r\n" % (len(record), record))
        assert open_socket.recv(4096).startswith(b"HTTP/1.1 200")
        open_socket.sendall(b"zz\r\n")
        assert b"HTTP/1.1" not in rest(open_socket)


def test_half_closed_connections_are_closed(proxy: HeadgateProxy) -> None:
    for request in (b"", b"GET /to", GET, CHUNKED, CHUNKED + b"5\r\n{"):
        with connection(proxy) as open_socket:
            open_socket.sendall(request)
            open_socket.shutdown(socket.SHUT_WR)
            rest(open_socket)
    assert httpx.get(f"{proxy.url}/topics", timeout=SECONDS_MAX).status_code == 200


def test_clients_that_disconnect_during_a_rebalance_leave_no_member_behind(proxy: HeadgateProxy) -> None:
    with httpx.Client(base_url=proxy.url, timeout=SECONDS_MAX) as client:
        base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
        client.post(f"{base}/topics", json={"topic_name": "leavers"})
        for number in range(30):
            with connection(proxy) as open_socket:
                path = f"{base}/consumer-groups/leavers/records?topics=leavers"
                open_socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                # Disconnect at different times: before admission, before the join, and as a member.
                time.sleep(number * 0.01)
        deadline = time.monotonic() + SECONDS_MAX
        while (found := client.get(f"{base}/consumer-groups/leavers/consumers")).status_code == 200:
            if not found.json()["data"]:
                break
            assert time.monotonic() < deadline, found.text
            time.sleep(0.1)


def frame(opcode: int, payload: bytes, *, final: bool = True, masked: bool = True, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    flag = 0x80 if masked else 0
    head = bytes([(0x80 if final else 0) | opcode])
    if size < 126:
        head += bytes([flag | size])
    else:
        head += bytes([flag | 127]) + struct.pack(">Q", size)
    return head + (bytes(4) if masked else b"") + payload


FRAMES = {
    "not UTF-8": frame(1, b"\xff\xfe"),
    "binary": frame(2, b"\x00\x01"),
    "deep": frame(1, b"[" * 60_000),
    "unmasked": frame(1, b"{}", masked=False),
    "reserved": frame(5, b"x"),
    "huge": frame(1, b"x", length=2**62),
    "null": frame(1, b"null"),
    "a bad end": frame(8, b"\x00"),
    "endless": frame(1, b"{", final=False) + frame(0, b" " * 60_000, final=False) * 100,
    "empty": frame(1, b"") * 100,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("path", ["topics/sockets/records:produce", "topics/sockets/records:consume"])
def test_invalid_frames_close_the_websocket_or_are_ignored(proxy: HeadgateProxy, path: str, kind: str) -> None:
    before = memory_mb(proxy)
    with httpx.Client(base_url=proxy.url, timeout=SECONDS_MAX) as client:
        base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
        client.post(f"{base}/topics", json={"topic_name": "sockets"})
    key = base64.b64encode(bytes(16)).decode()
    head = f"GET {base}/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    with connection(proxy) as open_socket:
        open_socket.sendall(f"{head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        assert open_socket.recv(4096).startswith(b"HTTP/1.1 101")
        with contextlib.suppress(OSError):
            # If the WebSocket is still open, the proxy responds to the close frame.
            open_socket.sendall(FRAMES[kind] + frame(8, struct.pack(">H", 1000)))
        rest(open_socket)
    assert memory_mb(proxy) - before < GROWTH_MB_MAX


def test_a_connection_without_a_complete_head_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS_MAX", 0.1)

    async def app(scope: object, receive: object, send: object) -> None: ...

    port = free_port()
    protocol = http_protocol.BoundedHttpProtocol
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, port=port, lifespan="off", log_level="error"))
    serving = threading.Thread(target=lambda: asyncio.run(server.serve()))
    serving.start()
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for start in (b"", b"GET / HT"):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as open_socket:
                open_socket.sendall(start)
                assert open_socket.recv(1) == b""
    finally:
        server.should_exit = True
        serving.join()
