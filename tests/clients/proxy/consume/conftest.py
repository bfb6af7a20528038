"""A proxy, a registry and a broker. Some tests, or all tests on request, also run on Apache Kafka."""

from collections.abc import Iterator

import pytest

from tests.clients.proxy.brokers import ANY, CHOSEN, HEADGATE
from tests.clients.proxy.conftest import RunningProxy
from tests.clients.proxy.consume.api import Api
from tests.live.headgate import HeadgateBroker

SETTINGS = {
    "stream.heartbeat.ms": "300",
    "trusted.proxies": "127.0.0.1",
    "allowed.hosts": "kafka.example.com,a.example",
}


@pytest.fixture(scope="session")
def headgate_consume_api(
    headgate_broker: HeadgateBroker, registry_url: str, running_proxy: RunningProxy
) -> Iterator[Api]:
    yield from _opened(headgate_broker.address, registry_url, running_proxy)


@pytest.fixture(scope="session")
def kafka_consume_api(apache_kafka: str, registry_url: str, running_proxy: RunningProxy) -> Iterator[Api]:
    yield from _opened(apache_kafka, registry_url, running_proxy)


@pytest.fixture(scope="session", params=CHOSEN)
def api(request: pytest.FixtureRequest) -> Api:
    return _chosen(request)


@pytest.fixture(scope="session", params=ANY)
def any_api(request: pytest.FixtureRequest) -> Api:
    """For the few tests that always run on Apache Kafka as well."""
    return _chosen(request)


def _chosen(request: pytest.FixtureRequest) -> Api:
    name = "headgate_consume_api" if request.param == HEADGATE else "kafka_consume_api"
    found: Api = request.getfixturevalue(name)
    return found


def _opened(address: str, registry_url: str, running_proxy: RunningProxy) -> Iterator[Api]:
    with running_proxy(address, registry_url, SETTINGS) as proxy:
        api = Api(proxy.url, address, registry_url)
        yield api
        api.client.close()
