"""The first hour of a new user: first_hour.md with the built wheel, from `headgate up` to a test with the plugin."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.documentation import blocks, run_page
from tests.packaging.environment import Environment

PAGE = Path(__file__).resolve().parent / "first_hour.md"


@pytest.mark.usefixtures("curl")
def test_the_first_hour_works_with_the_installed_wheel(wheel_environment: Environment, tmp_path: Path) -> None:
    programs = wheel_environment.folder / "bin"
    command = [str(programs / "headgate"), "up", "--ephemeral", "--ports", "auto", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        try:
            assert process.stdout is not None
            addresses = json.loads(process.stdout.readline())["services"]
            run_page(PAGE, tmp_path, addresses, {}, path=str(programs), languages=("console",))
            for service, title in (("registry", "schema registry"), ("proxy", "REST proxy")):
                url = f"http://{addresses[service]}/"
                assert httpx.get(url).text == "{}"
                assert f"<h1>Headgate {title}</h1>" in httpx.get(url, headers={"Accept": "text/html"}).text
        finally:
            process.terminate()
    (code,) = (block.text for block in blocks(PAGE) if block.language == "python")
    (tmp_path / "test_tickets.py").write_text(code, encoding="utf-8")
    printed = wheel_environment.run(
        wheel_environment.python, "-m", "pytest", "-q", "-p", "headgate.pytest_plugin", "-p", "no:cacheprovider",
        cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )  # fmt: skip
    assert "1 passed" in printed
