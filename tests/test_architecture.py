"""Enforces the import rules of `tests.layers`, which ARCHITECTURE.md includes. Reads the imports with `ast`."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.layers import ARCHITECTURE, EVERYTHING, PACKAGES, with_tables
from tests.scheduling import SPARK_FUNCTIONS, SPARK_SESSION, group_of, turn_of

ROOT = Path(__file__).resolve().parent.parent

# Modules for files, time, randomness and threads. Pure layers get them as arguments.
IMPURE_MODULES = frozenset({
    "fcntl", "os", "pathlib", "random", "secrets", "shutil", "socket", "tempfile", "threading", "time",
})  # fmt: skip
IMPURE_CALLS = frozenset({"open", "uuid.uuid1", "uuid.uuid4"})
PURE_LAYERS = ("broker.protocol", "broker.state")

LINES_MAX = 400
LONG_FILES = frozenset({"serdes/columnar/kernels/decode_rows.py"})
"""One Numba kernel, which cannot call Python functions."""
REPEATED_LINES_MAX = 12

SERVER_LIBRARIES = ("fastapi", "starlette", "uvicorn", "granian", "sqlite_utils")


def modules(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import; write the package's name"
            assert node.module is not None
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def ours_imported_by(path: Path) -> Iterator[tuple[str, int]]:
    """What a file imports of ours, without the namespace."""
    for imported, line in imports_of(path):
        if imported.startswith("headgate."):
            yield imported.removeprefix("headgate."), line


def may_import(importer: str, imported: str) -> bool:
    own, target = importer.split(".", maxsplit=1)[0], imported.split(".", maxsplit=1)[0]
    package = PACKAGES[own]
    if own == target or target not in PACKAGES or package.imports == EVERYTHING:
        return True
    allowed = set(package.imports)
    for part, extra in package.part_imports:
        if (importer + ".").startswith(f"{own}.{part}."):
            allowed |= set(extra)
    return any((imported + ".").startswith(name + ".") for name in allowed)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_follow_the_table(package: str) -> None:
    offences = [
        f"{module}:{line} imports {imported}"
        for module, path in modules(package)
        for imported, line in ours_imported_by(path)
        if not may_import(module, imported)
    ]
    assert offences == []


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_only_from_layers_to_their_left(package: str) -> None:
    layers = {part: number for number, layer in enumerate(PACKAGES[package].layers) for part in layer}
    outside = {"__init__", "__main__", *PACKAGES[package].independent}
    offences = []
    for module, path in modules(package):
        part = [*module.split("."), "__init__"][1]
        if part in outside:
            continue
        if part not in layers:
            offences.append(f"{module} has no layer in tests/layers.py")
            continue
        for imported, line in ours_imported_by(path):
            target = imported.split(".")[1] if imported.startswith(f"{package}.") else part
            if layers.get(target, len(layers)) > layers[part]:
                offences.append(f"{module}:{line} imports {imported}")
    assert offences == []


def test_the_tables_of_architecture_md_are_current() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert text == with_tables(text), "stale: run `python -m tests.layers`"


@pytest.mark.parametrize("folder", [*PACKAGES, "headgate", "tests", "benchmarks", "examples"])
def test_packages_are_imported_through_their_namespace(folder: str) -> None:
    """`broker` next to `headgate.broker` would load every module twice."""
    offences = [
        f"{module}:{line} imports {imported}"
        for module, path in modules(folder)
        for imported, line in imports_of(path)
        if imported.split(".")[0] in PACKAGES and not imported.startswith("pyspark_headgate")
    ]
    assert offences == []


@pytest.mark.parametrize("layer", PURE_LAYERS)
def test_pure_layers_use_no_file_no_clock_and_no_random_number(layer: str) -> None:
    offences = []
    for module, path in modules(layer.replace(".", "/")):
        offences += [
            f"{module}:{line} imports {imported}"
            for imported, line in imports_of(path)
            if imported.split(".")[0] in IMPURE_MODULES
        ]
        offences += [
            f"{module}:{node.lineno} calls {ast.unparse(node.func)}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in IMPURE_CALLS
        ]
    assert offences == []


def test_each_handler_of_the_broker_is_one_api() -> None:
    for module, path in modules("broker/handlers"):
        if path.name == "__init__.py":
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assigned = {ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets}
        functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
        assert {"API_KEY", "VERSIONS"} <= assigned, f"{module} declares no API"
        assert "handle" in functions, f"{module} has no function `handle`"


def test_only_the_server_of_the_broker_uses_asyncio() -> None:
    offences = [
        f"{module}:{line} imports {imported}"
        for module, path in modules("broker")
        for imported, line in imports_of(path)
        if imported.split(".")[0] in {"asyncio", "uvloop"} and not (module + ".").startswith("broker.server.")
    ]
    assert offences == []


@pytest.mark.parametrize("package", ["spark_udfs", "serdes"])
def test_importing_a_client_side_package_loads_no_server_library(package: str) -> None:
    code = f"import sys, headgate.{package}; print([m for m in {SERVER_LIBRARIES!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", PACKAGES)
def test_package_init_files_contain_no_code(package: str) -> None:
    for module, path in modules(package):
        if path.name != "__init__.py":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            plain = isinstance(node, (ast.Import, ast.ImportFrom)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            names = isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
            assert plain or names, f"{module}:{node.lineno} holds code"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_exports_a_name_of_one_of_its_modules(package: str) -> None:
    """Importing the module later puts it in the place of what was given out; loaded already, it does not."""
    offences = [
        f"{module}:{line} gives out {imported}"
        for module, path in modules(package)
        if path.name == "__init__.py"
        for imported, line in ours_imported_by(path)
        for name in [imported.rpartition(".")[2]]
        if imported not in (f"{module}.{name}", f"{module}.{name}.{name}")
        and ((path.parent / f"{name}.py").exists() or (path.parent / name).is_dir())
    ]
    assert offences == []


def test_a_worker_gets_the_tests_of_a_file_and_of_spark_together() -> None:
    assert group_of("tests/faults/test_a.py::test_one[x]") == group_of("tests/faults/test_a.py::test_two")
    assert group_of("tests/faults/test_a.py::test_one") != group_of("tests/faults/test_b.py::test_one")
    assert group_of("tests/cluster/test_a.py::test_one") == group_of("tests/cluster/test_b.py::test_one")
    assert group_of("tests/spark/test_a.py::test_one") == group_of("tests/spark/pipeline/test_b.py::test_two[y]")
    assert group_of("tests/spark/functions/test_a.py::test_one") == SPARK_FUNCTIONS
    assert group_of("tests/spark/test_a.py::test_one") != group_of("tests/spark/test_demo.py::test_one")
    assert turn_of("tests/spark/test_a.py::test_one") < turn_of("tests/faults/test_kill.py::test_one")
    assert turn_of("tests/faults/test_kill.py::test_one") < turn_of("tests/unit/test_a.py::test_one")


def test_tests_outside_the_spark_group_use_no_session() -> None:
    beside = []
    for path in sorted((ROOT / "tests" / "spark").rglob("test_*.py")):
        if group_of(str(path.relative_to(ROOT))) in (SPARK_SESSION, SPARK_FUNCTIONS):
            continue
        beside.append(path.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = {argument.arg for argument in node.args.args}
                assert "spark" not in arguments, f"{path}:{node.lineno}"
    assert "test_demo.py" in beside


def test_no_file_is_too_long() -> None:
    folders = [*PACKAGES, "tests", "benchmarks", "examples"]
    long = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > LINES_MAX
    }
    assert long <= LONG_FILES


def test_no_run_of_lines_appears_in_two_packages() -> None:
    size = REPEATED_LINES_MAX + 1
    first: dict[tuple[str, ...], str] = {}
    repeated = []
    for package in PACKAGES:
        for module, path in modules(package):
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
            for start in range(len(lines) - size + 1):
                other = first.setdefault(tuple(lines[start : start + size]), module)
                if other.split(".")[0] != package:
                    repeated.append(f"{module}:{start + 1} repeats lines of {other}")
    assert repeated == []
