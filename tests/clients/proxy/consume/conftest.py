"""A proxy, a registry and a broker to consume from: ours, and Apache Kafka for a few tests or, if told so, for all."""

import os
from collections.abc import Iterator

import pytest

from tests.clients.proxy.consume.api import Api
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry

HEADGATE = "headgate"
APACHE_KAFKA = pytest.param("apache-kafka", marks=pytest.mark.kafka)
BROKERS = [HEADGATE, *([APACHE_KAFKA] if os.environ.get("HEADGATE_TEST_KAFKA") == "1" else [])]
SETTINGS = {"stream.heartbeat.ms": "300"}


@pytest.fixture(scope="session")
def consume_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    registry = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    registry.start()
    yield registry.url
    registry.stop()


@pytest.fixture(scope="session")
def headgate_consume_api(
    headgate_broker: HeadgateBroker, consume_registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    yield from _api(headgate_broker.address, consume_registry, tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_consume_api(
    apache_kafka: str, consume_registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    yield from _api(apache_kafka, consume_registry, tmp_path_factory)


@pytest.fixture(scope="session", params=BROKERS)
def api(request: pytest.FixtureRequest) -> Api:
    return _chosen(request)


@pytest.fixture(scope="session", params=[HEADGATE, APACHE_KAFKA])
def any_api(request: pytest.FixtureRequest) -> Api:
    """For the few that run on Apache Kafka in every run."""
    return _chosen(request)


def _chosen(request: pytest.FixtureRequest) -> Api:
    name = "headgate_consume_api" if request.param == HEADGATE else "kafka_consume_api"
    found: Api = request.getfixturevalue(name)
    return found


def _api(address: str, registry_url: str, factory: pytest.TempPathFactory) -> Iterator[Api]:
    proxy = HeadgateProxy(factory.mktemp("proxy"), address, registry_url, SETTINGS)
    proxy.start()
    api = Api(proxy.url, address, registry_url)
    yield api
    api.client.close()
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""
