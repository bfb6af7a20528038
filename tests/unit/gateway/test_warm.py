import json
from pathlib import Path

import pytest

from headgate.gateway.cli.app import run
from headgate.gateway.cli.errors import ExitCode
from headgate.serdes.columnar.native import code_store
from headgate.serdes.columnar.native.library import LIBRARY
from headgate.serdes.columnar.native.signatures import SIGNATURES

FAST_KERNEL = "make_text"
"""The kernel that compiles fastest."""


@pytest.fixture(autouse=True)
def no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores the variable that the command sets."""
    monkeypatch.setenv(code_store.DIRECTORY_VARIABLE, "")


def test_warm_compiles_the_missing_kernels_and_stores_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kernel in SIGNATURES:
        LIBRARY.wait(kernel)
    tmp_path.chmod(0o755)
    for kernel, sealed in LIBRARY.sealed(SIGNATURES):
        if kernel != FAST_KERNEL:
            code_store.write_sealed(tmp_path, kernel, sealed)
    assert run(["warm", "--directory", str(tmp_path), "--json"]) == ExitCode.DONE
    shown = json.loads(capsys.readouterr().out)
    assert shown["compiled"] == [FAST_KERNEL]
    assert shown["directories"] == [str(tmp_path)]
    assert code_store.read_sealed(FAST_KERNEL) is not None
    assert run(["warm", "--directory", str(tmp_path), "--json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["compiled"] == []


def test_warm_fails_before_it_compiles_if_the_code_cannot_be_stored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["warm", "--directory", "/proc/no such directory"]) == ExitCode.FAILED
    assert "--directory" in capsys.readouterr().err
