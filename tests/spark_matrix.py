"""Run part of the Spark tests with every supported PySpark version: `make spark-matrix`.

Each version has a virtual environment below `.cache/spark-matrix`. It contains only PySpark, and uses the other
packages of `.venv`. The functions are tested with a classic session and over Spark Connect, against a server in a
separate process. The result is the table in docs/spark.md. Arguments select versions: `python -m tests.spark_matrix
4.0`.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "spark-matrix"
VERSIONS = ("3.5", "4.0", "4.1", "4.2", "4.3")
RUN_SECONDS_MAX = 3600
FUNCTIONS = [f"tests/spark/functions/test_{name}.py" for name in ("dead_letters", "encoding", "floats", "types")]
SOURCE = ["tests/spark/source/test_spark.py"]


@dataclass(frozen=True, slots=True)
class Selection:
    name: str
    tests: list[str]
    environment: dict[str, str]
    missing_in: tuple[tuple[str, str], ...] = ()
    """Versions without this feature, and why."""


SELECTIONS = (
    Selection("functions", FUNCTIONS, {}),
    Selection("functions over Connect", FUNCTIONS, {"SPARK_CONNECT": "1"}, (("3.5", "PySpark contains no server"),)),
    Selection("data source", SOURCE, {}, (("3.5", "PySpark has no data sources in Python"),)),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    versions = parser.parse_args().versions
    lines = ["| tests | PySpark | passed | failed | skipped |", "|---|---|---|---|---|"]
    is_failed = False
    for selection in SELECTIONS:
        for version in versions:
            python = environment_of(version)
            exact = installed_version(python)
            reason = dict(selection.missing_in).get(version)
            if reason is not None:
                lines.append(f"| {selection.name} | {exact} | – | – | all: {reason} |")
                continue
            passed, failed, skipped = run(python, version, selection)
            is_failed = is_failed or failed > 0 or passed == 0
            reasons = "; ".join(f"{count}: {why}" for why, count in skipped.items())
            lines.append(f"| {selection.name} | {exact} | {passed} | {failed} | {reasons or 0} |")
            print(lines[-1], flush=True)
    print("\n".join(["", *lines]))
    return int(is_failed)


def environment_of(version: str) -> Path:
    """The Python of the environment, which is created on the first call."""
    folder = CACHE / version
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"installing PySpark {version}", flush=True)
        venv.create(folder, clear=True, with_pip=True, symlinks=True)
        packages = Path(sysconfig.get_path("purelib"))
        inside = folder / "lib" / packages.parent.name / "site-packages"
        # The file processes the path files of .venv too, such as that of the editable installation.
        (inside / "zz_others.pth").write_text(f"import site; site.addsitedir({str(packages)!r})\n", encoding="utf-8")
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--ignore-installed"]
        subprocess.run([*pip, f"pyspark=={version}.*"], check=True)
        done.touch()
    return python


def installed_version(python: Path) -> str:
    code = "import pyspark; print(pyspark.__version__)"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def run(python: Path, version: str, selection: Selection) -> tuple[int, int, Counter[str]]:
    """The numbers of passed and failed tests, and of skipped ones by reason."""
    name = f"{version}-{selection.name.replace(' ', '-')}"
    report, log = CACHE / f"{name}.xml", CACHE / f"{name}.log"
    report.unlink(missing_ok=True)
    environment = {key: value for key, value in os.environ.items() if key not in {"CI", "PYSPARK_PYTHON"}}
    environment |= {"SPARK_MATRIX": version, "PYTHONPATH": str(ROOT), **selection.environment}
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *selection.tests]
    with log.open("wb") as output:
        subprocess.run(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, timeout=RUN_SECONDS_MAX, check=False
        )
    if not report.exists():
        print(log.read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr)
        return 0, 1, Counter()
    return counts_of(report)


def counts_of(report: Path) -> tuple[int, int, Counter[str]]:
    """Read a report of pytest in JUnit's format."""
    passed, failed, skipped = 0, 0, Counter[str]()
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        if skip is not None:
            skipped[skip.get("message", "")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    raise SystemExit(main())
