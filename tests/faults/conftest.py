"""Small file systems that tests can fill."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

TMPFS_BYTES = 6 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(mount)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        assert os.environ.get("CI") != "true", done.stderr
        pytest.skip(f"mounting a small file system needs root: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)
