"""requirements/environment.sh, which prepares .venv for make: the version of Python, and broken environments."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.live.installation import ROOT
from tests.packaging.environment import site_packages

SCRIPT = ROOT / "requirements" / "environment.sh"


def old_python(folder: Path) -> Path:
    """A Python that reports version 3.10."""
    program = folder / "python3.10"
    code = "import sys; sys.version_info = (3, 10, 13); exec(sys.argv[1])"
    program.write_text(f"""#!/bin/sh\nexec {sys.executable} -c '{code}' "$2"\n""", encoding="utf-8")
    program.chmod(0o755)
    return program


def python_with_pip(folder: Path) -> Path:
    """A Python whose virtual environments use the pip of the current one. An installation of pip takes seconds."""
    program, here = folder / "python3", site_packages(Path("$3"))
    text = f"""#!/bin/sh
[ "$1" = -m ] || exec {sys.executable} "$@"
{sys.executable} -m venv --without-pip "$3" && echo {sysconfig.get_path("purelib")} > "{here}/pip.pth"
"""
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def prepare(venv: Path, *pythons: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", str(SCRIPT), str(venv), *map(str, pythons)], capture_output=True, text=True, check=False
    )


def test_an_old_python_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    done = prepare(tmp_path / "venv", "no-such-python", old_python(tmp_path))
    assert done.returncode == 1
    assert "python3.10 is Python 3.10.13; Headgate needs Python 3.11 or later" in done.stderr
    assert "try: install Python 3.11" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_the_first_suitable_python_creates_an_environment_that_stays(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    python = python_with_pip(tmp_path)
    created = prepare(venv, old_python(tmp_path), python)
    assert created.returncode == 0, created.stderr
    assert f"Creating {venv} with {python} (Python 3." in created.stderr
    (venv / "base.stamp").touch()
    again = prepare(venv, "no-such-python")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (venv / "base.stamp").exists()
    moved = venv.rename(tmp_path / "moved")
    refused = prepare(moved, old_python(tmp_path))
    assert refused.returncode == 1
    assert "moved cannot be used: it was created in another folder" in refused.stderr
    assert (moved / "base.stamp").exists()  # nothing is removed without a replacement


@pytest.mark.parametrize(
    ("broken", "reason"), [("folder", "it is incomplete"), ("interpreter", "its Python does not run")]
)
def test_an_environment_that_does_not_work_is_replaced(tmp_path: Path, broken: str, reason: str) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "test.stamp").touch()
    if broken == "interpreter":
        (venv / "pyvenv.cfg").touch()
        (venv / "bin" / "python").symlink_to("/no/such/python")
    # `true` accepts every argument, so it creates nothing.
    done = prepare(venv, "true")
    assert done.returncode == 0
    assert f"Replacing {venv}: {reason}." in done.stderr
    assert not venv.exists()


def test_make_ends_before_it_installs_anything(tmp_path: Path) -> None:
    command = ["make", "up", f"VENV={tmp_path / 'venv'}", f"PYTHON={old_python(tmp_path)}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Headgate needs Python 3.11 or later" in done.stderr
    assert "Installing" not in done.stdout
