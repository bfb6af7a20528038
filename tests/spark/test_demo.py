"""`make demo`: from curl to the table and the dead letters."""

import os
import shutil
import subprocess
import sys

from tests.conftest import unavailable
from tests.live.installation import PYTHONPATH, ROOT


def test_the_demo_succeeds() -> None:
    for program in ("java", "curl"):
        if shutil.which(program) is None:
            unavailable(f"the demo needs {program}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PYTHONPATH},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for line in (
        "1           ada         12.34       EUR         tea, cup",
        "4           barbara     5.00        USD",
        "  1  BAD_MAGIC",
        "  2  TRUNCATED",
        "  1  TRAILING_BYTES",
        "  1  UNKNOWN_SCHEMA",
        "  1  CORRUPT",
    ):
        assert line in done.stdout, done.stdout
    assert "10 read · 4 good · 6 poison" in done.stdout + done.stderr
