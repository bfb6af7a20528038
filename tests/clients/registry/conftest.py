"""One live registry in a separate process, for all tests with real clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.registry.schema_cli import Cli
from tests.live.registry import RegistryProcess, running_registry


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as process:
        yield process


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, monkeypatch)
