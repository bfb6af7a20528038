"""A user's script beside modules named like our folders: headgate works, on the driver and in Spark workers."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import unavailable
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess
from tests.packaging.environment import Environment

SCRIPTS = Path(__file__).resolve().parent / "user_project"
FOLDERS = sorted(path.name for path in (ROOT / "headgate").iterdir() if path.is_symlink())


@pytest.fixture(scope="module")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the user's scripts, and one module per folder of ours that fails when it is used."""
    assert {"broker", "gateway", "openapi", "proxy", "registry", "serdes", "web", "wire"} <= set(FOLDERS)
    for name in FOLDERS:
        (tmp_path / f"{name}.py").write_text(f'OWNER = "user"\nNAME = "{name}"\n', encoding="utf-8")
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [["bin/headgate"], ["bin/python", "-m", "headgate"]], ids=["command", "module"])
def test_the_command_reports_the_installed_version(
    wheel_environment: Environment, project: Path, command: list[str]
) -> None:
    program, *arguments = command
    printed = wheel_environment.run(wheel_environment.folder / program, *arguments, "--version", cwd=project)
    assert f"{printed.strip().replace(' ', '-')}.dist-info/METADATA" in str(wheel_environment.files)


def test_all_servers_start_next_to_modules_of_the_same_names(
    wheel_environment: Environment, project: Path, tmp_path: Path
) -> None:
    ports = {name: free_port() for name in ("broker", "registry", "proxy")}
    options = [word for name, port in ports.items() for word in (f"--{name}-port", str(port))]
    command = [str(wheel_environment.folder / "bin" / "headgate"), "up", *options]
    process = ServerProcess(command, tmp_path / "up.log", cwd=project, environment={"PYTHONPATH": ""})
    process.start(lambda: all(accepts(f"127.0.0.1:{port}") for port in ports.values()))
    try:
        assert httpx.get(f"http://127.0.0.1:{ports['registry']}/subjects").json() == []
        assert httpx.get(f"http://127.0.0.1:{ports['proxy']}/topics").json() == []
    finally:
        assert process.stop() == 0, process.tail()


def test_a_script_next_to_modules_of_the_same_names_round_trips_a_value(
    installed: Environment, project: Path, registry_url: str
) -> None:
    printed = installed.run(installed.python, project / "round_trip.py", registry_url, cwd=project)
    assert printed.strip() == "{'id': 7, 'name': 'Ada'}"


@pytest.mark.spark
def test_spark_workers_next_to_modules_of_the_same_names_decode_a_column(
    wheel_environment: Environment, project: Path, registry_url: str
) -> None:
    if shutil.which("java") is None:
        unavailable("Spark needs Java")
    python = wheel_environment.python
    printed = wheel_environment.run(
        python, project / "decode_with_spark.py", registry_url, cwd=project, PYSPARK_PYTHON=str(python)
    )
    assert printed.splitlines()[-1] == "[(1, 'Ada', None), (2, 'Bob', None), (None, None, 'BAD_MAGIC')]"
