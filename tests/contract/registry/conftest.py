"""A new registry for each test, called through its ASGI application without sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.registry.model import Level
from headgate.registry.settings import RegistrySettings
from tests.live.registry import RegistryApi


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RegistryApi]:
    """A registry with the default compatibility level, BACKWARD."""
    api = RegistryApi(tmp_path)
    yield api
    api.close()


@pytest.fixture
def free_api(tmp_path: Path) -> Iterator[RegistryApi]:
    """A registry with the compatibility level NONE."""
    api = RegistryApi(tmp_path, RegistrySettings(compatibility_level=Level.NONE))
    yield api
    api.close()
