"""Wheel and sdist of this checkout, built once and installed into an empty virtual environment each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.installation import ROOT
from tests.packaging.environment import Environment, install

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist, by kind."""
    folder = tmp_path_factory.mktemp("dist")
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="session")
def wheel_environment(distributions: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install(distributions["wheel"], tmp_path_factory.mktemp("installed") / "wheel")


@pytest.fixture(scope="session")
def sdist_environment(distributions: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install(distributions["sdist"], tmp_path_factory.mktemp("installed") / "sdist")


@pytest.fixture(scope="session")
def base_environment(distributions: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras."""
    return install(distributions["wheel"], tmp_path_factory.mktemp("installed") / "base", is_minimal=True)


@pytest.fixture(params=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest) -> Environment:
    """The environment of each kind of distribution."""
    environment: Environment = request.getfixturevalue(f"{request.param}_environment")
    return environment
