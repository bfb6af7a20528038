"""`make demo`: from curl to the table and the dead letters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import unavailable
from tests.live.installation import PYTHONPATH, ROOT


def test_the_demo_succeeds_and_its_commands_work(tmp_path: Path) -> None:
    for program in ("java", "curl"):
        if shutil.which(program) is None:
            unavailable(f"the demo needs {program}")
    with subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(errors := (tmp_path / "stderr").open("w+")),
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PYTHONPATH},
    ) as demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if line.startswith("  cat "):
                break
        # The servers run until standard input ends, so every command works.
        commands = [line.strip() for line in lines if line.startswith(("  curl", "  cat", "  /"))]
        for command in commands:
            subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], check=True, capture_output=True, timeout=60)
        demo.communicate(timeout=60)
    with errors:
        errors.seek(0)
        said, printed = errors.read(), "".join(lines)
    assert demo.returncode == 0, said[-4000:]
    assert len(commands) == 5, printed
    for line in (
        "1           ada         12.34       EUR         tea, cup",
        "4           barbara     5.00        USD",
        "  1  BAD_MAGIC",
        "  2  TRUNCATED",
        "  1  TRAILING_BYTES",
        "  1  UNKNOWN_SCHEMA",
        "  1  CORRUPT",
    ):
        assert line in printed, printed
    assert "10 read · 4 good · 6 poison" in printed + said
