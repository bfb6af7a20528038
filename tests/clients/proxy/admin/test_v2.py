"""v2 metadata, creation of topics, health."""

import secrets
from typing import Any

import pytest

from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of

V2 = "application/vnd.kafka.v2+json"


def test_topics_partitions_offsets_and_brokers(any_api: Api) -> None:
    name = any_api.topic(partitions=2, retention_ms="1000")
    broker = any_api.get("/brokers")["brokers"][0]
    assert name in any_api.get("/topics")
    row = {
        "partition": 1,
        "leader": broker,
        "replicas": [{"broker": broker, "leader": True, "in_sync": True}],
    }
    topic = any_api.get(f"/topics/{name}")
    assert set(topic) == {"name", "configs", "partitions"}
    assert topic["name"] == name
    assert topic["configs"]["retention.ms"] == "1000"
    assert topic["configs"]["cleanup.policy"] == "delete"
    assert topic["partitions"][1] == row
    assert any_api.get(f"/topics/{name}/partitions") == topic["partitions"]
    assert any_api.get(f"/topics/{name}/partitions/1") == row
    assert any_api.get(f"/topics/{name}/partitions/1/offsets") == {"beginning_offset": 0, "end_offset": 0}


def test_unknown_resources_are_not_found(api: Api) -> None:
    name = api.topic()
    for path in ("", "/partitions", "/partitions/0", "/partitions/0/offsets"):
        answer = api.ask("GET", f"/topics/nowhere{path}")
        assert error_of(answer) == (404, 40401)
        assert answer.json()["message"] == "Topic not found."
        assert answer.headers["content-type"] == V2
    for path in ("", "/offsets"):
        assert error_of(api.ask("GET", f"/topics/{name}/partitions/9{path}")) == (404, 40402)
        assert error_of(api.ask("GET", f"/topics/{name}/partitions/-1{path}")) == (404, 404)
    assert error_of(api.ask("GET", "/no/such/path")) == (404, 404)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, V2),
        ("*/*", V2),
        (V2, V2),
        ("application/json", "application/json"),
        ("application/vnd.kafka+json", "application/vnd.kafka+json"),
        (f"application/json;q=0.5, {V2}", V2),
    ],
)
def test_the_media_type_is_negotiated(api: Api, accept: str | None, expected: str) -> None:
    for path in ("/", "/topics", "/brokers"):
        answer = api.ask("GET", path, headers={"accept": accept} if accept else {})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == expected


def test_an_unknown_accept_header_is_rejected(api: Api) -> None:
    assert error_of(api.ask("GET", "/topics", headers={"accept": "text/html"})) == (406, 406)
    assert error_of(api.ask("GET", "topics", headers={"accept": "text/html"})) == (406, 406)


def test_a_topic_is_created(any_api: Api) -> None:
    name = f"topic-{secrets.token_hex(4)}"
    body = {"topic_name": name, "partitions_count": 3, "replication_factor": 1}
    answer = any_api.ask("POST", "/admin/topics", body)
    assert (answer.status_code, answer.content) == (201, b"")
    assert len(any_api.get(f"/topics/{name}/partitions")) == 3
    assert error_of(any_api.ask("POST", "/admin/topics", body)) == (400, 40002)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (422, 42206)),
        (b"null", (422, 42206)),
        (b"{", (400, 400)),
        (b"[]", (400, 400)),
        (b"{}", (400, 400)),
        (b'{"topic_name": 1}', (400, 400)),
        (b'{"topic_name": "a", "partitions": 1}', (400, 400)),
        (b"[" * 100_000, (400, 400)),
        (b'{"topic_name": "\xff"}', (400, 400)),
    ],
)
def test_invalid_bodies_are_rejected(api: Api, content: bytes, expected: tuple[int, int]) -> None:
    headers = {"content-type": "application/json"}
    for path in ("/admin/topics", f"{api.base}/topics"):
        assert error_of(api.client.post(path, content=content, headers=headers)) == expected


def test_bodies_of_another_media_type_are_rejected(api: Api) -> None:
    for path in ("/admin/topics", f"{api.base}/topics"):
        answer = api.client.post(path, content=b"topic_name=a", headers={"content-type": "text/plain"})
        assert error_of(answer) == (415, 415)


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "/topics"), ("PUT", "/brokers"), ("POST", "brokers"), ("PUT", "topics/a")]
)
def test_other_methods_are_rejected(api: Api, method: str, path: str) -> None:
    assert error_of(api.ask(method, path)) == (405, 405)


def test_health_without_a_registry(any_api: Api) -> None:
    assert any_api.get("/health") == {
        "status": "DEGRADED",
        "kafka": {"status": "UP", "cluster_id": any_api.cluster_id, "brokers": 1},
        "registry": {"status": "DOWN", "message": "The schema registry is not available: ConnectError."},
    }
    for path in ("/healthy", "/ready"):
        answer: Any = any_api.ask("GET", path)
        assert (answer.status_code, answer.content) == (204, b"")
