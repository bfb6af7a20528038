"""With CI=true, no test of the suite is skipped in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.installation import ROOT

SUITE = """
import pytest
from tests.conftest import unavailable

def test_without_a_program():
    unavailable("no such program")

def test_that_skips():
    pytest.skip("not here")

@pytest.mark.skipif(True, reason="never")
def test_that_is_marked():
    pass

@pytest.mark.xfail(strict=True)
def test_that_is_known_to_fail():
    assert False
"""


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [("", "3 skipped, 1 xfailed"), ("true", "2 failed, 1 xfailed, 1 error")],
)
def test_a_skipped_test_fails_on_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) == (ci != "true")
