"""The installed packages are importable, each module under one name, and `import headgate` loads no library."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.live.installation import ROOT
from tests.packaging.environment import Environment

LOADED_BY_IMPORT = """
import json, sys
before = set(sys.modules)
import headgate
print(json.dumps(sorted(set(sys.modules) - before)))
"""

PUBLIC_NAMES = """
import headgate
for name in headgate.__all__:
    assert getattr(headgate, name) is not None, name
try:
    headgate.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
else:
    raise AssertionError("an unknown name resolves")
scope = {}
exec("from headgate import *", scope)
assert set(scope) - {"__builtins__"} == set(headgate.__all__), scope
assert "__getattr__" not in scope
print(headgate.__version__)
"""

EVERYTHING = """
import collections, importlib, json, os, pkgutil, sys, warnings
warnings.simplefilter("ignore")
import headgate, pyspark_headgate
names = [module.name for module in pkgutil.walk_packages(headgate.__path__, "headgate.")]
for name in names:
    importlib.import_module(name)
by_file = collections.defaultdict(set)
for name, module in list(sys.modules.items()):
    if getattr(module, "__file__", None):
        by_file[os.path.realpath(module.__file__)].add(name)
twice = {file: sorted(known) for file, known in by_file.items() if len(known) > 1 and "headgate" in str(known)}
folders = {name.partition(".")[2].partition(".")[0] for name in names}
top_level = sorted((folders & set(sys.modules)) - {"__main__"})
print(json.dumps({"count": len(names), "twice": twice, "top_level": top_level, "file": headgate.__file__}))
"""

DATA_FILES = """
from headgate.openapi.documents import document
for name in ("registry", "proxy_v2", "proxy_v3"):
    assert document(name).startswith("openapi:"), name
"""


def test_importing_headgate_loads_nothing_but_the_standard_library(installed: Environment, tmp_path: Path) -> None:
    loaded = json.loads(installed.run(installed.python, "-c", LOADED_BY_IMPORT, cwd=tmp_path))
    outside = {name for name in loaded if name.split(".")[0] not in sys.stdlib_module_names}
    assert outside == {"headgate", "headgate.public_names"}
    # Modules of the standard library that take long to load.
    assert not {"asyncio", "importlib.metadata", "email", "http", "logging", "socket", "ssl"} & set(loaded)


def test_public_names_and_the_version_resolve(installed: Environment, tmp_path: Path) -> None:
    version = installed.run(installed.python, "-c", PUBLIC_NAMES, cwd=tmp_path).strip()
    assert f"headgate-{version}.dist-info/METADATA" in str(installed.files)


def test_the_openapi_documents_are_readable(installed: Environment, tmp_path: Path) -> None:
    installed.run(installed.python, "-c", DATA_FILES, cwd=tmp_path)


def test_every_module_is_importable_and_has_one_name(installed: Environment, tmp_path: Path) -> None:
    report = json.loads(installed.run(installed.python, "-c", EVERYTHING, cwd=tmp_path))
    assert report["file"] == str(installed.site_packages / "headgate" / "__init__.py")
    assert (report["twice"], report["top_level"]) == ({}, [])
    modules = [name for name in installed.files if "/site-packages/headgate/" in name and name.endswith(".py")]
    assert report["count"] == len(modules) - 1  # all but headgate itself


def test_no_module_of_the_checkout_is_loaded_under_two_names() -> None:
    done = subprocess.run([sys.executable, "-c", EVERYTHING], cwd=ROOT, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert report["file"] == str(ROOT / "headgate" / "__init__.py")
    assert (report["twice"], report["top_level"]) == ({}, [])


def test_tests_cannot_import_a_folder_by_its_top_level_name() -> None:
    with pytest.raises(ImportError, match=r"import headgate\.registry: the top-level name loads a second copy"):
        import_module("registry.limits")
