"""Admin requests while the broker is down, unresponsive or restarted.

The proxy returns the correct error code in bounded time and reconnects when the broker returns.
"""

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.ports import free_port

# Far below the default, and far above the latency on a loaded machine.
REQUEST_TIMEOUT_MS = 2_000
ANSWER_SECONDS_MAX = 30.0


@contextmanager
def proxy_for(folder: Path, address: str) -> Iterator[httpx.Client]:
    settings = {"kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS)}
    proxy = HeadgateProxy(folder, address, settings=settings)
    proxy.start()
    with httpx.Client(base_url=proxy.url, timeout=ANSWER_SECONDS_MAX) as client:
        yield client
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""


def error_of(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error_code"]


def test_a_broker_that_is_down_is_unavailable(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with proxy_for(tmp_path, address) as client:
        for path in ("/topics", "/brokers", "/topics/a/partitions/0/offsets", "/v3/clusters", "/v3/clusters/a/topics"):
            answer = client.get(path)
            assert error_of(answer) == (503, 50302), path
            assert address.rpartition(":")[2] in answer.json()["message"] or "bootstrap" in answer.json()["message"]
        assert error_of(client.post("/admin/topics", json={"topic_name": "a"})) == (503, 50302)
        assert client.get("/healthy").status_code == 204
        assert error_of(client.get("/ready")) == (503, 50302)
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "DOWN")
        assert client.get("/").json() == {}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never responds."""
    listener = socket.create_server(("127.0.0.1", free_port()))
    taken: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                taken.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    with closing(listener):
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for connection in taken:
        connection.close()


def test_a_broker_that_does_not_answer_costs_bounded_time(tmp_path: Path, silent: str) -> None:
    with proxy_for(tmp_path, silent) as client:
        for path in ("/topics", "/v3/clusters"):
            answer = client.get(path)
            assert error_of(answer) in ((500, 50003), (503, 50302)), path
            assert answer.json()["message"]


def test_a_broker_that_comes_back_is_found_again(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path / "broker")
    broker.start()
    name = f"topic-{secrets.token_hex(4)}"
    with proxy_for(tmp_path / "proxy", broker.address) as client:
        assert client.post("/admin/topics", json={"topic_name": name}).status_code == 201
        base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
        assert client.get(f"{base}/topics/{name}").status_code == 200
        broker.kill()
        for path in ("/topics", f"{base}/topics", f"{base}/consumer-groups/a", f"{base}/topics/{name}/configs"):
            assert error_of(client.get(path)) in ((503, 50302), (500, 50003)), path
        broker.start()
        assert client.get("/topics").json() == [name]
        assert client.get(f"{base}/topics/{name}").status_code == 200
        assert client.put(f"{base}/topics/{name}/configs/retention.ms", json={"value": "1"}).status_code == 204
    broker.stop()
