"""A produce creates a missing topic only when it has a record to write."""

import secrets
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from websockets.sync.client import connect

from tests.clients.proxy.conftest import RunningProxy
from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import JSON_V2, World
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.live.headgate import HeadgateBroker

AVRO = "application/vnd.kafka.avro.v2+json"
SCHEMA = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
UNFIT = {"type": "AVRO", "schema": SCHEMA, "data": {"id": "seven"}}
TOO_LARGE = "x" * 1_100_000


def topics(world: World) -> set[str]:
    admin = AdminClient({"bootstrap.servers": world.address, "log_level": 0})
    return set(admin.list_topics(timeout=30).topics)


def v2(world: World, topic: str, key: str) -> None:
    fields = {"idempotency_key": key} if key else {}
    for body, media, expected in (
        ({"records": [{"value": {"id": "seven"}}], "value_schema": SCHEMA}, AVRO, 42203),
        ({"records": [{"value": {"id": 7}}], "value_schema": "no schema"}, AVRO, 42205),
        ({"records": [{"value": {"id": 7}}], "value_schema_id": 999_999}, AVRO, 40801),
        ({"records": [{"value": {"id": 7}}]}, AVRO, 42202),
        ({"records": [{"value": 1, "what": 1}]}, JSON_V2, 422),
        ({"records": [{"value": TOO_LARGE}]}, JSON_V2, 42206),
    ):
        answer = world.post(f"/topics/{topic}", body, media, **fields)
        assert answer.json()["error_code"] == expected, answer.text


def batch(world: World, topic: str, key: str) -> None:
    entries = [{"id": "1", "value": UNFIT}, {"id": "2", "value": {"type": "nothing"}}]
    fields = {"idempotency_key": key} if key else {}
    answer = world.post(world.v3(topic, "records:batch"), {"entries": entries}, "application/json", **fields)
    assert (answer.status_code, len(answer.json()["failures"])) == (207, 2), answer.text


def batch_with_a_large_record(world: World, topic: str, key: str) -> None:
    entries = [{"id": "1", "value": {"type": "STRING", "data": TOO_LARGE}}]
    answer = world.post(world.v3(topic, "records:batch"), {"entries": entries}, "application/json")
    assert answer.json()["failures"][0]["error_code"] == 42206, answer.text


def stream(world: World, topic: str, key: str) -> None:
    answer = world.post(world.v3(topic), {"value": UNFIT}, "application/json")
    assert (answer.status_code, answer.json()["error_code"]) == (200, 400), answer.text


def web_socket(world: World, topic: str, key: str) -> None:
    url = world.proxy.url.replace("http://", "ws://")
    with connect(f"{url}{world.v3(topic, 'records:produce')}") as socket:
        socket.send('{"value":{"type":"nothing"}}')
        assert '"error_code":400' in str(socket.recv(30))


@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (v2, ""),
        (v2, "once"),
        (batch, ""),
        (batch, "once"),
        (batch_with_a_large_record, ""),
        (stream, ""),
        (web_socket, ""),
    ],
)
def test_a_refused_produce_creates_no_topic(
    any_world: World, refused: Callable[[World, str, str], None], key: str
) -> None:
    topic = f"missing-{secrets.token_hex(4)}"
    refused(any_world, topic, f"{key}-{topic}" if key else "")
    assert topic not in topics(any_world)
    any_world.produce(topic, {"value": {"id": 7}}, media=AVRO, value_schema=SCHEMA)
    assert topic in topics(any_world)
    assert len(any_world.read(topic, 1)) == 1


def test_one_good_entry_of_a_batch_creates_the_topic(any_world: World) -> None:
    topic = f"missing-{secrets.token_hex(4)}"
    entries = [{"id": "1", "value": UNFIT}, {"id": "2", "value": {"type": "JSON", "data": 5}}]
    answer = any_world.post(any_world.v3(topic, "records:batch"), {"entries": entries}, "application/json")
    assert [row["id"] for row in answer.json()["successes"]] == ["2"], answer.text
    assert any_world.values(topic, 1) == [b"5"]


def refuses_to_create(proxy_url: str, registry_url: str) -> None:
    topic = f"missing-{secrets.token_hex(4)}"
    body: dict[str, Any] = {"records": [{"value": {"id": 7}}], "value_schema": SCHEMA}
    answer = httpx.post(f"{proxy_url}/topics/{topic}", json=body, headers={"content-type": AVRO}, timeout=60)
    assert error_of(answer) == (404, 40401)
    assert f"{topic}-value" not in httpx.get(f"{registry_url}/subjects").json()


def test_no_schema_is_registered_for_a_topic_that_the_broker_does_not_create(
    tmp_path_factory: pytest.TempPathFactory, registry_url: str, running_proxy: RunningProxy
) -> None:
    broker = HeadgateBroker(tmp_path_factory.mktemp("broker"), {"auto.create.topics.enable": "false"})
    broker.start()
    with running_proxy(broker.address, registry_url) as proxy:
        refuses_to_create(proxy.url, registry_url)
    broker.stop()


@pytest.mark.kafka
def test_no_schema_is_registered_for_a_topic_that_apache_kafka_does_not_create(
    java_tools: None, tmp_path_factory: pytest.TempPathFactory, registry_url: str, running_proxy: RunningProxy
) -> None:
    node = KafkaNode(
        tmp_path_factory.mktemp("kafka"), {"auto.create.topics.enable": "false"}, heap_mb=256, flags=SHORT_LIVED
    )
    node.start()
    with running_proxy(node.address, registry_url) as proxy:
        refuses_to_create(proxy.url, registry_url)
    node.stop()
