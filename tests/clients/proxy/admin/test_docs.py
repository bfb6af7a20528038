"""The commands of docs/proxy.md work, and the page lists every setting."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from headgate.proxy.settings import ProxySettings
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT

TEXT = (ROOT / "docs" / "proxy.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command and its expected output."""
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


@pytest.mark.usefixtures("curl")
def test_every_line_works_as_shown(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path / "broker")
    broker.start()
    registry = HeadgateRegistry(tmp_path / "registry")
    registry.start()
    proxy = HeadgateProxy(tmp_path / "proxy", broker.address, registry.url)
    proxy.start()
    known = ""
    everything = list(commands())
    assert len(everything) > 15
    for command, shown in everything:
        here = command.replace("http://127.0.0.1:8082", proxy.url).replace("python3", sys.executable)
        if here.startswith("CLUSTER="):
            # The following commands use this shell variable.
            known = f"{here}; "
            continue
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {known}{here}"], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        if command.endswith("consumer-groups/billing"):
            assert done.stdout.strip() in ("204", "404")
        elif shown and shown[0].startswith(("{", '["')):
            assert json.loads(done.stdout) == json.loads(shown[0]), command
        else:
            assert [line.strip() for line in done.stdout.splitlines()] == shown, command
    assert proxy.stop() == 0
    registry.stop()
    broker.stop()


def test_every_setting_is_listed_with_its_default() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \| `?([^`|]*?)`? \| (.*) \|$", TEXT, re.MULTILINE)
    listed = {name: default for name, default, _ in rows}
    assert all(meaning for *_, meaning in rows)
    for field in fields(ProxySettings):
        if field.name == "security":  # The properties of Kafka's clients: docs/kafka-security.md.
            continue
        default = "" if field.default in (None, "") else str(field.default)
        if isinstance(field.default, bool):
            default = default.lower()
        assert listed.get(field.name.replace("_", ".")) == default.strip(), field.name


def test_every_link_has_a_target() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
