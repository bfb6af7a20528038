from collections.abc import Iterator

import pytest

from headgate.serdes import RegistryClient, RegistrySettings
from headgate.spark_udfs.executor.decoding import decoder_of
from tests.unit.serdes.stub_registry import StubRegistry


@pytest.fixture(autouse=True)
def _no_decoder_of_another_test() -> Iterator[None]:
    """Clear the decoder cache: cached schemas belong to the registry of one test."""
    decoder_of.cache_clear()
    yield
    decoder_of.cache_clear()


@pytest.fixture
def columns_without_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of PySpark create columns of Spark Connect, which need no session."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")


@pytest.fixture
def stub_registry(monkeypatch: pytest.MonkeyPatch) -> StubRegistry:
    """The registry of all clients that registry options create."""
    stub = StubRegistry()

    def client(settings: RegistrySettings) -> RegistryClient:
        return RegistryClient(settings, transport=stub.transport, sleep=lambda seconds: None)

    monkeypatch.setattr("headgate.spark_udfs.spec.registry_options.RegistryClient", client)
    return stub
