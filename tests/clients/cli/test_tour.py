import os
import subprocess
import sys

from tests.live.installation import PYTHONPATH, ROOT


def test_the_tour_goes_through() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "tour.py")],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    assert done.returncode == 0, done.stderr
    assert "TYPE_MISMATCH" in done.stdout
    assert done.stderr.rstrip().endswith("stopped")
