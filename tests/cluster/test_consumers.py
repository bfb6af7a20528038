"""Consumer instances of another worker, and group streams while their coordinator does not answer."""

import json
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from headgate.proxy.consumers.ownership import Ownership
from tests.cluster.conftest import RunningProxy
from tests.live.apache_kafka_cluster import KafkaCluster
from tests.live.ports import free_port
from tests.live.topics import create_topic, produce

V2 = "application/vnd.kafka.v2+json"
JSON_V2 = "application/vnd.kafka.json.v2+json"
RECORDS = 50
READ_SECONDS_MAX = 30.0
REQUEST_TIMEOUT_MS = 60_000
"""A stream that waits for its coordinator is silent for this time."""
HEARTBEATS = 10


@pytest.fixture
def topic(cluster: KafkaCluster) -> str:
    name = f"consumed-{secrets.token_hex(4)}"
    create_topic(cluster.address, name, 1, 3)
    produce(cluster.address, name, [json.dumps("x" * 100).encode()] * RECORDS)
    return name


@pytest.fixture
def workers(running_proxy: RunningProxy) -> Iterator[list[str]]:
    urls = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    listed = {"worker.urls": ",".join(urls)}
    with running_proxy({"worker.url": urls[0], **listed}), running_proxy({"worker.url": urls[1], **listed}):
        yield urls


def plain_get(url: str, path: str) -> tuple[list[str], bytes]:
    """The lines of the response head and the body, for a request without Accept-Encoding."""
    host, _, port = url.removeprefix("http://").partition(":")
    head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: {JSON_V2}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode())
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head_bytes, _, body = received.partition(b"\r\n\r\n")
    return head_bytes.decode().split("\r\n"), body


@pytest.mark.parametrize("owner", [0, 1])
def test_an_instance_of_another_worker_is_read_without_compression(workers: list[str], topic: str, owner: int) -> None:
    group = f"group-{secrets.token_hex(4)}"
    ownership = Ownership(workers[owner], tuple(workers))
    name = next(name for name in map(str, range(1000)) if ownership.elsewhere(group, name) is None)
    asked, path = workers[1 - owner], f"/consumers/{group}/instances/{name}"
    with httpx.Client(base_url=asked, headers={"content-type": V2}, timeout=30) as client:
        body = {"name": name, "format": "json", "auto.offset.reset": "earliest"}
        assert client.post(f"/consumers/{group}", json=body).status_code == 200
        assigned = client.post(f"{path}/assignments", json={"partitions": [{"topic": topic, "partition": 0}]})
        assert assigned.status_code == 204
        lines, received = plain_get(asked, f"{path}/records?timeout=10000")
        names = [line.partition(":")[0].lower() for line in lines[1:]]
        assert lines[0].startswith("HTTP/1.1 200"), lines
        assert "content-encoding" not in names
        assert names.count("date") == 1
        assert received.count(b"x" * 100) == RECORDS
        assert client.delete(path).status_code == 204


def test_a_group_stream_sends_heartbeats_while_its_coordinator_does_not_answer(
    cluster: KafkaCluster, running_proxy: RunningProxy, topic: str
) -> None:
    group = f"group-{secrets.token_hex(4)}"
    with (
        running_proxy({"kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS)}) as proxy,
        httpx.Client(base_url=proxy.url, timeout=READ_SECONDS_MAX) as client,
        ThreadPoolExecutor(1) as background,
    ):
        base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
        path = f"{base}/consumer-groups/{group}/records?topics={topic}"
        with client.stream("GET", path, headers={"accept": "application/x-ndjson"}) as answer:
            lines = answer.iter_lines()
            opened = json.loads(next(lines))["open"]
            rows = [
                row for row in (json.loads(next(line for line in lines if line)) for _ in range(10)) if "ack" in row
            ]
            admin = cluster.admin()
            node = cluster.node(admin.describe_consumer_groups([group])[group].result(30).coordinator.id)
            node.pause()
            try:
                # An acknowledgement makes the stream commit to the coordinator that does not answer.
                background.submit(httpx.post, opened["acks"], json={"ack": rows[0]["ack"]}, timeout=60)
                heartbeats = 0
                while heartbeats < HEARTBEATS:
                    heartbeats += next(lines) == ""
            finally:
                node.resume()
    cluster.wait_until_in_sync()
