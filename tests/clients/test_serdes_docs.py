"""Runs the examples of docs/serdes.md from top to bottom against a live registry."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import PYTHONPATH, ROOT

PAGE = ROOT / "docs" / "serdes.md"


@pytest.fixture(scope="module")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server.url
    server.stop()


def test_the_examples_run_as_they_stand(registry_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "examples"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 9
    try:
        for block in blocks:
            # Keep line numbers, so that a traceback points to the line in the page.
            lines = text.count("\n", 0, block.start(1))
            code = "\n" * lines + block[1].replace("http://localhost:8081", registry_url)
            exec(compile(code, str(PAGE), "exec"), names)
    finally:
        client = names["client"]
        client.close()  # type: ignore[attr-defined]  # the page's own name
    assert "TRAILING_BYTES - 1 bytes left over" in capsys.readouterr().out


def test_the_example_of_dead_letters_runs(registry_url: str) -> None:
    script = ROOT / "examples" / "poison_and_dead_letters.py"
    done = subprocess.run(
        [sys.executable, str(script), registry_url],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    for line in (
        "0: {'sensor': 'roof', 'celsius': 21.5}",
        "2: UNKNOWN_SCHEMA",
        "3: BAD_MAGIC",
        "5: NULL",
        "4 goes back",
    ):
        assert line in done.stdout, done.stdout
