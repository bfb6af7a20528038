"""Runs all commands of the README's console blocks in order against a new `headgate up`."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.cli.conftest import Cli
from tests.clients.cli.up import ports, up
from tests.live.installation import ROOT

README = ROOT / "README.md"


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield each command and the output lines that the README shows."""
    for block in re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


@pytest.mark.usefixtures("curl")
def test_the_examples_of_the_readme_work(tmp_path: Path) -> None:
    everything = list(commands())
    assert len(everything) >= 12
    with up(tmp_path, *ports(), "--set", "group.initial.rebalance.delay.ms=0") as (_, addresses):
        cli = Cli(addresses["broker"], tmp_path)
        environment = cli.environment | {
            "HEADGATE_REGISTRY_URL": f"http://{addresses['registry']}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for command, shown in everything:
            if "kcat" in command and shutil.which("kcat") is None:
                assert os.environ.get("CI") != "true", "kcat is not installed (make system installs it)"
                continue
            here = command.replace("127.0.0.1:9092", addresses["broker"])
            here = here.replace("127.0.0.1:8081", addresses["registry"])
            here = here.replace("127.0.0.1:8082", addresses["proxy"])
            done = subprocess.run(
                ["bash", "-c", f"set -eo pipefail; {here}"],
                capture_output=True,
                text=True,
                timeout=60,
                cwd=tmp_path,
                env=environment,
                check=False,
            )
            assert done.returncode == 0, (command, done.stderr)
            if here.startswith("curl") and shown[0].startswith("{"):
                # The README may omit fields of a response.
                assert json.loads(shown[0]).items() <= json.loads(done.stdout).items(), command
            else:
                assert done.stdout.splitlines() == shown, (command, done.stderr)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert len(links) > 5
    missing = [link for link in links if not link.startswith("http") and not (ROOT / link).exists()]
    assert missing == []
