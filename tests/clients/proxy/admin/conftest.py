"""Proxies with the embedded broker. `any_api`, or all tests on request, also use Apache Kafka."""

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients.proxy.brokers import ANY, APACHE_KAFKA, CHOSEN, HEADGATE
from tests.clients.proxy.conftest import RunningProxy
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

REQUEST_SECONDS_MAX = 60.0


class Api:
    """Client of a proxy. A path without a leading slash is relative to the cluster."""

    def __init__(self, url: str, broker: str) -> None:
        self.url = url
        self.broker = broker
        self.client = httpx.Client(base_url=url, timeout=REQUEST_SECONDS_MAX)
        self.cluster_id: str = self.client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        self.base = f"/v3/clusters/{self.cluster_id}"

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return self.client.request(method, path if path.startswith("/") else f"{self.base}/{path}", **options)

    def get(self, path: str, **options: Any) -> Any:
        """Return the body of the response, whose status must be 200."""
        answer = self.ask("GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def topic(self, partitions: int = 1, **configs: str) -> str:
        name = f"topic-{secrets.token_hex(4)}"
        rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        body = {"topic_name": name, "partitions_count": partitions, "replication_factor": 1, "configs": rows}
        answer = self.ask("POST", "topics", body)
        assert answer.status_code == 201, answer.text
        return name

    def link(self, path: str) -> str:
        return f"{self.url}{self.base}/{path}"


@pytest.fixture(scope="session")
def headgate_api(headgate_broker: HeadgateBroker, running_proxy: RunningProxy) -> Iterator[Api]:
    with running_proxy(headgate_broker.address) as proxy:
        yield from _opened(proxy, HEADGATE)


@pytest.fixture(scope="session")
def kafka_api(apache_kafka: str, running_proxy: RunningProxy) -> Iterator[Api]:
    with running_proxy(apache_kafka) as proxy:
        yield from _opened(proxy, APACHE_KAFKA)


@pytest.fixture(scope="session", params=CHOSEN)
def api(request: pytest.FixtureRequest) -> Api:
    return _chosen(request)


@pytest.fixture(scope="session", params=ANY)
def any_api(request: pytest.FixtureRequest) -> Api:
    """For the few tests that always run on Apache Kafka as well."""
    return _chosen(request)


def _chosen(request: pytest.FixtureRequest) -> Api:
    found: Api = request.getfixturevalue("headgate_api" if request.param == HEADGATE else "kafka_api")
    return found


def _opened(proxy: HeadgateProxy, broker: str) -> Iterator[Api]:
    api = Api(proxy.url, broker)
    yield api
    api.client.close()
