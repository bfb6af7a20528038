"""One cluster of three Apache Kafka nodes for all tests of the folder. A test leaves all nodes running and in sync."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.live.apache_kafka_cluster import KafkaCluster
from tests.live.headgate_proxy import HeadgateProxy

RunningProxy = Callable[[Mapping[str, str]], AbstractContextManager[HeadgateProxy]]
PROXY_SETTINGS = {"kafka.request.timeout.ms": "3000", "stream.heartbeat.ms": "300"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/cluster/" in item.nodeid:
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def cluster(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    found = KafkaCluster(tmp_path_factory.mktemp("cluster"))
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def running_proxy(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> RunningProxy:
    @contextmanager
    def run(settings: Mapping[str, str]) -> Iterator[HeadgateProxy]:
        proxy = HeadgateProxy(
            tmp_path_factory.mktemp("proxy"), cluster.address, settings={**PROXY_SETTINGS, **settings}
        )
        if "worker.url" in settings:
            proxy.port = int(settings["worker.url"].rpartition(":")[2])
        proxy.start()
        yield proxy
        assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""

    return run
