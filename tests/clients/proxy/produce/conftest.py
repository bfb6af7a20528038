"""A proxy with broker and registry, and a reader of written records. `any_world` includes Apache Kafka."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.proxy.brokers import ANY, CHOSEN, HEADGATE
from tests.clients.proxy.conftest import RunningProxy
from tests.clients.proxy.produce.conversation import Conversation
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

SECONDS_MAX = 60.0
JSON_V2 = "application/vnd.kafka.json.v2+json"


@dataclass
class World:
    address: str
    proxy: HeadgateProxy
    registry_url: str
    client: httpx.Client
    cluster_id: str

    def topic(self, partitions: int = 1, **configs: str) -> str:
        name = f"topic-{secrets.token_hex(4)}"
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    def post(self, path: str, body: Any, media: str = JSON_V2, **fields: str) -> httpx.Response:
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        headers = {"content-type": media, **{name.replace("_", "-"): value for name, value in fields.items()}}
        return self.client.post(path, content=content, headers=headers)

    def produce(self, topic: str, *records: dict[str, Any], media: str = JSON_V2, **body: Any) -> dict[str, Any]:
        """Produce records and return the response. Every record must succeed."""
        answer = self.post(f"/topics/{topic}", {"records": records, **body}, media)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert all(row["error_code"] is None for row in found["offsets"]), found
        return found

    def v3(self, topic: str, what: str = "records") -> str:
        return f"/v3/clusters/{self.cluster_id}/topics/{topic}/{what}"

    def stream(self, topic: str, **fields: str) -> Conversation:
        return Conversation(self.proxy.url, self.v3(topic), **fields)

    def read(self, topic: str, count: int, partition: int = 0) -> list[Message]:
        """Read `count` records from the beginning, and check that there are no more."""
        return read(self.address, topic, count, partition)

    def values(self, topic: str, count: int, partition: int = 0) -> list[bytes | None]:
        return [message.value() for message in self.read(topic, count, partition)]


def read(address: str, topic: str, count: int, partition: int = 0) -> list[Message]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "none", "enable.partition.eof": False, "log_level": 0}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Message] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), SECONDS_MAX)
            assert messages, f"{len(found)} of {count} records"
            found += messages
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
        assert end == count, f"{end} records, not {count}"
    finally:
        consumer.close()
    return found


@pytest.fixture(scope="session")
def headgate_world(headgate_broker: HeadgateBroker, registry_url: str, running_proxy: RunningProxy) -> Iterator[World]:
    yield from _world(headgate_broker.address, registry_url, running_proxy)


@pytest.fixture(scope="session")
def kafka_world(apache_kafka: str, registry_url: str, running_proxy: RunningProxy) -> Iterator[World]:
    yield from _world(apache_kafka, registry_url, running_proxy)


@pytest.fixture(scope="session", params=CHOSEN)
def world(request: pytest.FixtureRequest) -> World:
    return _chosen(request)


@pytest.fixture(scope="session", params=ANY)
def any_world(request: pytest.FixtureRequest) -> World:
    """For the few tests that always run on Apache Kafka as well."""
    return _chosen(request)


def _chosen(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue("headgate_world" if request.param == HEADGATE else "kafka_world")
    return found


def _world(address: str, registry_url: str, running_proxy: RunningProxy) -> Iterator[World]:
    with running_proxy(address, registry_url) as proxy, httpx.Client(base_url=proxy.url, timeout=SECONDS_MAX) as client:
        cluster_id = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        yield World(address, proxy, registry_url, client, cluster_id)
