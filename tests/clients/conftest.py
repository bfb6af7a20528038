"""The brokers and clients of these suites: always Headgate, and Apache Kafka if HEADGATE_TEST_KAFKA=1."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.aio import AioClient
from tests.clients.client import Client
from tests.clients.confluent import ConfluentClient
from tests.clients.kafka_python import KafkaPythonClient
from tests.clients.waiting import eventually
from tests.live.headgate import HeadgateBroker

BROKERS = ["headgate", *(["apache-kafka"] if os.environ.get("HEADGATE_TEST_KAFKA") == "1" else [])]
CLIENTS: dict[str, Callable[[str], Client]] = {
    "aiokafka": AioClient,
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
}

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session", params=BROKERS)
def broker_address(request: pytest.FixtureRequest) -> str:
    if request.param == "apache-kafka":
        address: str = request.getfixturevalue("apache_kafka")
        return address
    broker: HeadgateBroker = request.getfixturevalue("headgate_broker")
    return broker.address


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, broker_address: str) -> Iterator[Client]:
    made = CLIENTS[request.param](broker_address)
    yield made
    made.close()


@pytest.fixture
def make_topic(broker_address: str) -> MakeTopic:
    # Disable logging: librdkafka closes connections late and logs an error if the broker stops first.
    admin = AdminClient({"bootstrap.servers": broker_address, "log_level": 0})

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{secrets.token_hex(4)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)

        def visible() -> bool:
            """Return whether the topic is visible. Kafka responds before all metadata readers know the topic."""
            listed = admin.list_topics(timeout=30).topics.get(name)
            return listed is not None and listed.error is None and len(listed.partitions) == partitions

        eventually(visible, f"{name} is listed")
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


@pytest.fixture
def group() -> str:
    return f"group-{secrets.token_hex(4)}"
