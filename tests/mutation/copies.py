"""Copies of the source tree: one per job, because each job changes a file of its copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copy_tree(folder: Path) -> None:
    """Copy the files that git knows or would add, with the links of headgate/."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        if os.path.lexists(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    _require_own_imports(folder)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def _require_own_imports(folder: Path) -> None:
    """Check that Python imports headgate from the copy, although another tree is installed."""
    program = "import headgate.wire as module; print(module.__file__)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment(folder), check=True, capture_output=True, text=True)
    if not Path(done.stdout.strip()).is_relative_to(folder):
        raise RuntimeError(f"headgate comes from {done.stdout.strip()} instead of {folder}")
