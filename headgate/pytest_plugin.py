"""pytest fixtures. pytest loads this module through an entry point, so it imports the rest on first use.

| fixture | scope | value |
|---|---|---|
| `headgate` | session | the running services: `bootstrap_servers`, `registry_url`, `proxy_url` |
| `kafka_topic` | test | the name of a new topic; the broker creates it with the first record |
| `schema_registry` | test | a client of the registry; subjects named after `kafka_topic` are not shared |
| `poison` | test | creates a payload for each poison reason |

Each worker of pytest-xdist has its own services. A test that kills a service should start its own `Headgate`.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from headgate.serdes import RegistryClient
    from headgate.testing.gateway import Headgate
    from headgate.testing.poison import PoisonPayloads

_NAME_CHARACTERS_MAX = 100


@pytest.fixture(scope="session")
def headgate(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Headgate]":
    """A broker, a registry and a REST proxy for the whole run."""
    from headgate.testing.gateway import Headgate

    with Headgate(tmp_path_factory.mktemp("headgate")) as running:
        yield running


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    name: str = request.node.name
    return f"{re.sub('[^A-Za-z0-9_]+', '-', name)[:_NAME_CHARACTERS_MAX]}-{uuid4().hex[:8]}"


@pytest.fixture
def schema_registry(headgate: "Headgate") -> "Iterator[RegistryClient]":
    """A client of the registry. Use `kafka_topic` in the names of subjects: all tests share the registry."""
    from headgate.serdes import RegistryClient, RegistrySettings

    with RegistryClient(RegistrySettings(urls=(headgate.registry_url,))) as client:
        yield client


@pytest.fixture
def poison(schema_registry: "RegistryClient") -> "PoisonPayloads":
    """Creates payloads that cannot be decoded: `poison(Reason.TRUNCATED)`."""
    from headgate.testing.poison import PoisonPayloads

    return PoisonPayloads(schema_registry)
