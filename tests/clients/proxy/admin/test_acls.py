"""ACLs: Confluent's error code without an authorizer, and all operations with one."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.live.headgate_proxy import HeadgateProxy

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
WAIT_SECONDS_MAX = 15.0

RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
SEARCH = "resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY"


def test_every_request_fails_without_an_authorizer(any_api: Api) -> None:
    for method, path, body in (
        ("GET", "acls", None),
        ("GET", "acls?resource_type=topic&principal=User:alice", None),
        ("POST", "acls", RULE),
        ("POST", "acls:batch", {"data": [RULE]}),
        ("DELETE", f"acls?{SEARCH}", None),
    ):
        answer = any_api.ask(method, path, body)
        assert error_of(answer) == (400, 40002), (method, path)
        assert answer.json()["message"].startswith("No Authorizer is configured")


@pytest.mark.parametrize(
    "change",
    [{"operation": "FLY"}, {"pattern_type": "MATCH"}, {"resource_type": "ANY"}, {"permission": 3}, {"host": None}],
)
def test_invalid_acls_are_rejected_without_a_request_to_the_broker(api: Api, change: dict[str, Any]) -> None:
    assert error_of(api.ask("POST", "acls", {**RULE, **change})) == (400, 400)
    assert error_of(api.ask("POST", "acls:batch", {"data": [{**RULE, **change}]})) == (400, 400)
    assert error_of(api.ask("POST", "acls:batch", {})) == (422, 42206)


def test_a_deletion_requires_all_filters(api: Api) -> None:
    assert error_of(api.ask("DELETE", "acls")) == (400, 400)
    assert error_of(api.ask("DELETE", f"acls?{SEARCH.replace('TOPIC', 'PLANET')}")) == (400, 400)


@pytest.mark.kafka
@pytest.mark.slow
def test_acls_are_created_found_and_deleted_with_an_authorizer(java_tools: None, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "kafka", AUTHORIZER, heap_mb=256, flags=SHORT_LIVED)
    node.start()
    proxy = HeadgateProxy(tmp_path / "proxy", node.address)
    proxy.start()
    api = Api(proxy.url, "apache-kafka")
    created = api.ask("POST", "acls", RULE)
    assert (created.status_code, created.content) == (201, b"")
    more = [{**RULE, "operation": "WRITE"}, {**RULE, "pattern_type": "PREFIXED", "principal": "User:bob x"}]
    assert api.ask("POST", "acls:batch", {"data": more}).status_code == 201
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while len(api.get("acls")["data"]) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (found,) = api.client.get(created.headers["location"]).json()["data"]
    assert found == {
        "kind": "KafkaAcl",
        "metadata": {"self": created.headers["location"]},
        "cluster_id": api.cluster_id,
        **RULE,
    }
    assert error_of(api.ask("POST", "acls", {**RULE, "principal": "nobody"})) == (400, 40002)
    deleted = api.ask("DELETE", "acls?resource_type=TOPIC&pattern_type=LITERAL&operation=ANY&permission=ANY")
    assert [row["operation"] for row in deleted.json()["data"]] == ["READ", "WRITE"]
    api.client.close()
    assert proxy.stop() == 0
    node.stop()
