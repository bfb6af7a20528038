"""One live registry in a separate process, for all tests with real clients."""

from collections.abc import Iterator

import pytest

from tests.live.registry import RegistryProcess, running_registry


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as process:
        yield process
