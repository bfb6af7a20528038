"""Fixtures of all proxy tests: a registry, and a proxy that must stop cleanly."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry

RunningProxy = Callable[..., AbstractContextManager[HeadgateProxy]]


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    registry = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    registry.start()
    yield registry.url
    registry.stop()


@pytest.fixture(scope="session")
def running_proxy(tmp_path_factory: pytest.TempPathFactory) -> RunningProxy:
    """A context manager that runs a proxy: `with running_proxy(address, registry_url, settings) as proxy`."""

    @contextmanager
    def run(
        address: str, registry_url: str = "http://127.0.0.1:1", settings: Mapping[str, str] | None = None
    ) -> Iterator[HeadgateProxy]:
        proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), address, registry_url, settings)
        proxy.start()
        yield proxy
        assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""

    return run
