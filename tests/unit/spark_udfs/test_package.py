import subprocess
import sys
from pathlib import Path

import pytest

from headgate.spark_udfs.extra import MissingExtra, need_spark
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, PolicyError

ROOT = Path(__file__).resolve().parents[3]


def test_importing_the_package_needs_neither_spark_nor_arrow() -> None:
    heavy = ("pyspark", "pyarrow", "numpy", "numba")
    code = f"import sys, headgate.spark_udfs; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_dependency_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.spark_udfs.extra.find_spec", lambda name: None if name == "pyspark" else name)
    with pytest.raises(MissingExtra, match=r"pyspark not installed; run pip install 'headgate\[spark\]'"):
        need_spark()


def test_modes_are_case_insensitive_and_unknown_modes_are_rejected() -> None:
    assert OnPoison.for_columns("dead_letter") is OnPoison.DEAD_LETTER
    assert OnNewVersion.of("Restart") is OnNewVersion.RESTART
    with pytest.raises(PolicyError, match="DEAD_LETTER, NULL, FAIL"):
        OnPoison.for_columns("DROP")
    with pytest.raises(PolicyError, match="KEEP, FAIL, RESTART"):
        OnNewVersion.of("skip")
