"""What wheel and sdist contain, and what an installation adds to an environment."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from packaging.version import Version

from tests.live.installation import ROOT
from tests.packaging.environment import Environment, files_below

PACKAGES = ("headgate", "pyspark_headgate")


def dist_info(wheel: Path) -> str:
    """The metadata folder. The version comes from git, so it is not known here."""
    return "-".join(wheel.name.split("-")[:2]) + ".dist-info"


def packaged_files() -> frozenset[str]:
    """All modules and data files of the checkout, by their path below the import root."""
    return frozenset(f"{package}/{name}" for package in PACKAGES for name in files_below(ROOT / package))


def test_the_checkout_has_the_data_files_that_servers_read() -> None:
    files = packaged_files()
    assert "headgate/py.typed" in files
    assert {name for name in files if name.endswith(".yaml")} == {
        "headgate/openapi/proxy_v2.yaml",
        "headgate/openapi/proxy_v3.yaml",
        "headgate/openapi/registry.yaml",
    }
    assert "headgate/registry/formats/protobuf/known/google/type/money.proto" in files
    assert "headgate/registry/formats/protobuf/known/confluent/meta.proto" in files


def test_the_wheel_contains_every_file_of_the_packages(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        files = frozenset(name for name in wheel.namelist() if not name.startswith(dist_info(distributions["wheel"])))
    assert files == packaged_files()


def test_the_sdist_contains_every_file_of_the_packages(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["sdist"]) as sdist:
        assert not [member.name for member in sdist if member.issym() or member.islnk()]
        names = [PurePosixPath(*PurePosixPath(member.name).parts[1:]) for member in sdist if member.isfile()]
    files = frozenset(str(name) for name in names if name.parts[0] in PACKAGES)
    assert files == packaged_files()
    others = {str(name) for name in names} - files
    assert others == {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


def test_only_the_packages_and_the_command_are_installed(
    distributions: dict[str, Path], installed: Environment
) -> None:
    place = str(installed.site_packages.relative_to(installed.folder))
    added = {name.removeprefix(f"{place}/").split("/")[0] for name in installed.files if name.startswith(place)}
    assert added == {*PACKAGES, dist_info(distributions["wheel"])}
    assert {name for name in installed.files if not name.startswith(place)} == {"bin/headgate"}


def test_an_installation_contains_every_file_of_the_packages(installed: Environment) -> None:
    for package in PACKAGES:
        assert files_below(installed.site_packages / package) == files_below(ROOT / package)


def test_wheel_and_sdist_pass_the_checks_of_the_package_index(distributions: dict[str, Path]) -> None:
    twine = [sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions.values())]
    contents = [sys.executable, "-m", "check_wheel_contents", str(distributions["wheel"])]
    for command in (twine, contents):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_comes_from_the_tag(distributions: dict[str, Path]) -> None:
    """A clone without a tag has a development version. The index rejects its local part, which names the commit."""
    version = Version(distributions["wheel"].name.split("-")[1])
    tagged = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    assert version.is_devrelease is (tagged.strip() == b"")
    command = [sys.executable, "-m", "hatchling", "version"]
    released = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "3.2.1"}
    done = subprocess.run(command, cwd=ROOT, env=released, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3.2.1"
