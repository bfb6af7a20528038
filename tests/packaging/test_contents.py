"""What wheel and sdist contain, and what an installation adds to an environment."""

import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

from tests.live.installation import ROOT
from tests.packaging.environment import Environment, files_below

PACKAGES = ("headgate", "pyspark_headgate")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
DIST_INFO = f"headgate-{VERSION}.dist-info"


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
        files = frozenset(name for name in wheel.namelist() if not name.startswith(DIST_INFO))
    assert files == packaged_files()


def test_the_sdist_contains_every_file_of_the_packages(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["sdist"]) as sdist:
        assert not [member.name for member in sdist if member.issym() or member.islnk()]
        names = [PurePosixPath(*PurePosixPath(member.name).parts[1:]) for member in sdist if member.isfile()]
    files = frozenset(str(name) for name in names if name.parts[0] in PACKAGES)
    assert files == packaged_files()
    others = {str(name) for name in names} - files
    assert others == {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


def test_only_the_packages_and_the_command_are_installed(installed: Environment) -> None:
    place = str(installed.site_packages.relative_to(installed.folder))
    added = {name.removeprefix(f"{place}/").split("/")[0] for name in installed.files if name.startswith(place)}
    assert added == {*PACKAGES, DIST_INFO}
    assert {name for name in installed.files if not name.startswith(place)} == {"bin/headgate"}


def test_an_installation_contains_every_file_of_the_packages(installed: Environment) -> None:
    for package in PACKAGES:
        assert files_below(installed.site_packages / package) == files_below(ROOT / package)
