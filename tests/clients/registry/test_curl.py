"""Runs all curl commands of docs/registry.md in order against a new registry."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.live.registry import running_registry

DOCUMENT = Path(__file__).parents[3] / "docs" / "registry.md"


def commands() -> list[tuple[str, str]]:
    """Return each command of the console blocks and its documented output."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.replace("\\\n", " ").splitlines()
            found.append((lines[0], "\n".join(lines[1:]).strip()))
    return found


@pytest.mark.usefixtures("curl")
def test_the_curl_lines_of_the_documentation_work(tmp_path: Path) -> None:
    lines = commands()
    assert len(lines) >= 8
    with running_registry(tmp_path) as live:
        for command, expected in lines:
            arguments = shlex.split(command.replace("http://127.0.0.1:8081", live.url))
            assert arguments[0] == "curl", command
            done = subprocess.run([*arguments, "--max-time", "20"], capture_output=True, text=True, check=True)
            if expected:
                shown, wanted = json.loads(done.stdout), json.loads(expected)
                if isinstance(wanted, dict):
                    shown = {key: value for key, value in shown.items() if key in wanted}
                assert shown == wanted, command
