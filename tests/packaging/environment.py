"""A virtual environment with one installed distribution of this project, and the dependencies of the current one."""

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import distribution as distribution_of
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path
    files: frozenset[str]
    """Files that the installation added, relative to the environment. Bytecode is left out."""

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return site_packages(self.folder)

    def run(self, *command: str | Path, cwd: Path, **variables: str) -> str:
        """Run a command without the checkout on the path. Returns its standard output."""
        inherited = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        done = subprocess.run(
            [str(argument) for argument in command],
            cwd=cwd,
            env={**inherited, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def site_packages(environment: Path) -> Path:
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def files_below(folder: Path, *, follow_links: bool = True) -> frozenset[str]:
    """Every file below a folder, without bytecode and compiled kernels."""
    found: set[str] = set()
    for place, _, names in os.walk(folder, followlinks=follow_links):
        if "__pycache__" not in Path(place).parts:
            found.update(str((Path(place) / name).relative_to(folder)) for name in names)
    return frozenset(found)


def base_dependencies() -> set[str]:
    """The distributions that `pip install headgate` installs with it."""
    found: set[str] = set()
    waiting = ["headgate"]
    while waiting:
        for text in distribution_of(waiting.pop()).requires or ():
            requirement = Requirement(text)
            is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_needed and (name := canonicalize_name(requirement.name)) not in found:
                found.add(name)
                waiting.append(name)
    return found


def install(distribution: Path, folder: Path, *, is_minimal: bool = False) -> Environment:
    """Install a wheel or an sdist into a new environment. Downloads nothing.

    A .pth file adds the current dependencies. Python does not read .pth files in a folder that a .pth file names, so
    the editable installation of the checkout stays out of reach. A minimal environment has links to the dependencies
    of the base install instead.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    place = site_packages(folder)
    if is_minimal:
        for name in base_dependencies():
            for entry in {file.parts[0] for file in distribution_of(name).files or ()} - {"..", "__pycache__"}:
                (place / entry).symlink_to(Path(sysconfig.get_path("purelib")) / entry)
    else:
        (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    before = files_below(folder, follow_links=False)  # lib64 is a link to lib
    command = [*PIP, "--python", str(folder / "bin" / "python"), "install", "--no-index", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--ignore-installed", str(distribution)], check=True)
    return Environment(folder, files_below(folder, follow_links=False) - before)
