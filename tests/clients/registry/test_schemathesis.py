"""schemathesis generates requests from the OpenAPI document. All responses match the document."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.registry import ROOT, RegistryProcess

EXAMPLES = 4
"""Examples per operation and check. The coverage phase takes minutes: use `schemathesis run` by hand for it."""


@pytest.mark.slow
def test_schemathesis_finds_no_failure(live: RegistryProcess, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from schemathesis.cli import schemathesis; schemathesis()",
            "run",
            str(ROOT / "openapi" / "registry.yaml"),
            "--url",
            live.url,
            "--phases",
            "fuzzing",
            "--max-examples",
            str(EXAMPLES),
            "--generation-deterministic",
            "--no-color",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
