"""Limits, idle instances, an unavailable registry, a stopping proxy, clients that do not read."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.sync.client import connect

from headgate.serdes.framing import frame
from tests.clients.proxy.consume.api import AVRO, EVENTS, V2, Api, events, objects
from tests.clients.proxy.error_responses import error_of
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

SETTINGS = {
    "consumer.instance.timeout.ms": "700",
    "consumer.instances.max": "3",
    "read.streams.max": "3",
    "stream.heartbeat.ms": "200",
}


@pytest.fixture(scope="module")
def proxy(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateProxy]:
    started = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address, settings=SETTINGS)
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def api(proxy: HeadgateProxy, headgate_broker: HeadgateBroker) -> Iterator[Api]:
    made = Api(proxy.url, headgate_broker.address, "")
    yield made
    made.client.close()


def test_idle_instances_are_evicted_and_their_number_is_limited(api: Api) -> None:
    kept = api.instance()
    for _ in range(2):
        api.instance()
    refused = api.client.post(f"/consumers/{api.group()}", json={}, headers={"content-type": V2})
    assert error_of(refused) == (429, 429)
    assert int(refused.headers["retry-after"]) > 0
    deadline = time.monotonic() + 30
    while api.client.post(f"/consumers/{api.group()}", json={}).status_code == 429:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert error_of(kept.poll()) == (404, 40403)


def test_a_registry_that_is_down_makes_poison_rows_not_errors(api: Api) -> None:
    topic = api.topic()
    api.produce_bytes(topic, frame(1, b"\x02a"), b"x")
    rows = api.instance(accept=AVRO, format="avro").subscribe(topic).read(2)
    assert [row["poison"]["reason"] for row in rows] == ["REGISTRY_UNAVAILABLE", "TOO_SHORT"]
    assert [row["poison"]["schema_id"] for row in rows] == [1, None]
    page = api.page(topic)
    assert page["data"][0]["poison"]["reason"] == "REGISTRY_UNAVAILABLE"
    assert page["data"][1]["value"] == {"type": "STRING", "data": "x"}


def test_a_client_that_does_not_read_uses_limited_memory(api: Api, proxy: HeadgateProxy) -> None:
    topic = api.topic()
    for _ in range(12):
        api.produce(topic, *("x" * 10_000 for _ in range(400)), media_type="application/vnd.kafka.text.v2+json")
    assert proxy.process is not None
    before = memory_bytes(proxy.process.pid)
    sockets = []
    for _ in range(3):
        client = socket.create_connection(("127.0.0.1", proxy.port))
        request = (
            f"GET {api.base}/topics/{topic}/records HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/x-ndjson\r\n\r\n"
        )
        client.sendall(request.encode())
        sockets.append(client)
    # Without backpressure, each stream would buffer 48 MB. The page reads give the streams time to run.
    for _ in range(20):
        api.page(topic, "limit=1")
    grown = memory_bytes(proxy.process.pid) - before
    for client in sockets:
        client.close()
    assert grown < 60_000_000, f"{grown:,} bytes"


def test_clients_that_never_read_are_disconnected_when_others_need_memory(
    headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {"streams.bytes.max": str(12 * 1024 * 1024)}
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address, settings=settings)
    proxy.start()
    api = Api(proxy.url, headgate_broker.address, "")
    topic = api.topic()
    for _ in range(6):
        api.produce(topic, "x" * 900_000, media_type="application/vnd.kafka.text.v2+json")
    assert proxy.process is not None
    before = memory_bytes(proxy.process.pid)
    stream, pages = f"{api.base}/topics/{topic}/records", [f"/topics/{topic}/partitions/0/records?offset=0"] * 12
    pages += [f"{stream}?max_bytes=60000000"] * 12
    sockets = []
    for path, accept in [(stream, "application/x-ndjson")] * 5 + [(page, "*/*") for page in pages]:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.connect(("127.0.0.1", proxy.port))
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\nAccept: {accept}\r\n\r\n"
        client.sendall(request.encode())
        sockets.append(client)
    # This stream gets memory after the proxy has disconnected some of the other clients.
    assert len(api.lines(topic)) == 6
    grown = memory_bytes(proxy.process.pid) - before
    for client in sockets:
        client.close()
    api.client.close()
    assert proxy.stop() == 0
    assert grown < 80_000_000, f"{grown:,} bytes"


def test_streams_end_with_a_message_when_the_proxy_stops(api: Api, proxy: HeadgateProxy) -> None:
    """Must be the last test of this module, because it stops the module's proxy."""
    topic = api.topic()
    api.produce(topic, 1)
    base = f"{proxy.url.replace('http', 'ws')}{api.base}"
    waiting = api.instance(auto_offset_reset="latest").assign(topic, 0)
    pool = ThreadPoolExecutor(1)
    poll = pool.submit(waiting.poll, "timeout=50000")
    follow = f"topics/{topic}/records?follow=true&from=earliest"
    with (
        api.stream(follow) as lines,
        api.stream(follow, EVENTS) as marked,
        connect(f"{base}/topics/{topic}/records:consume?from=earliest") as opened,
    ):
        rows, marks = objects(lines), events(marked)
        next(rows)
        next(marks)
        opened.recv(30)
        refused = api.client.get(f"{api.base}/topics/{topic}/records", headers={"accept": EVENTS})
        assert error_of(refused) == (429, 429)
        assert proxy.process is not None
        assert proxy.process.stop() == 0
        note = {"reason": "shutdown", "positions": "0:1"}
        assert next(rows) == {"end": note}
        end = next(marks)
        assert end["event"] == "end"
        assert json.loads(end["data"]) == note
        assert json.loads(opened.recv(30)) == {"end": note}
    assert poll.result(30).json() == []
    pool.shutdown()


def memory_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no such process")
