"""`headgate schema` with a live registry."""

import io
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headgate.gateway.cli.schema import app, delete
from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryProcess, running_registry

runner = CliRunner()


class Terminal(io.StringIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    file = tmp_path / "a.avsc"
    file.write_text(record("a"))
    return file


def run(live: RegistryProcess, *arguments: str, code: int = 0, input: str | None = None) -> str:
    result = runner.invoke(app, [*arguments, "--registry", live.url], input=input)
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_schema_is_registered_listed_and_shown(live: RegistryProcess, schema_file: Path) -> None:
    id = run(live, "register", "cli", str(schema_file)).strip()
    assert run(live, "list", "cli").split() == ["cli", "1", id, "AVRO"]
    assert json.loads(run(live, "get", "cli")) == json.loads(record("a"))
    assert json.loads(run(live, "get", id, "--id", "--json"))["subject"] == "cli"
    assert json.loads(run(live, "list", "cli", "--json"))[0]["version"] == 1


def test_a_check_exits_3_with_all_reasons(live: RegistryProcess, schema_file: Path, tmp_path: Path) -> None:
    run(live, "register", "checked", str(schema_file))
    bad = tmp_path / "bad.avsc"
    bad.write_text(record(("a", "int"), "b"))
    told = run(live, "check", "checked", str(bad), code=3)
    assert "TYPE_MISMATCH /fields/0/type" in told
    assert "READER_FIELD_MISSING_DEFAULT_VALUE /fields/1" in told
    assert "give the field b a default" in told
    assert json.loads(run(live, "check", "checked", str(bad), "--json", code=3))["is_compatible"] is False
    good = record("a", defaulted("b"))
    assert run(live, "check", "checked", "-", input=good) == ""
    run(live, "register", "checked", str(bad), code=3)


def test_two_versions_are_compared(live: RegistryProcess, schema_file: Path, tmp_path: Path) -> None:
    run(live, "register", "differs", str(schema_file))
    run(live, "register", "differs", "-", input=record("a", defaulted("b")))
    assert '+      "name": "b"' in run(live, "diff", "differs", "1", "2", code=3)
    assert run(live, "diff", "differs", "2", "latest") == ""


def test_settings_are_shown_and_set(live: RegistryProcess) -> None:
    assert json.loads(run(live, "config", "x", "--level", "full")) == {"compatibility": "FULL"}
    assert json.loads(run(live, "config", "x")) == {"compatibilityLevel": "FULL"}
    run(live, "config", "x", "--unset")
    run(live, "config", "x", "--level", "sideward", code=1)
    assert json.loads(run(live, "mode", "x", "--set", "readonly")) == {"mode": "READONLY"}
    run(live, "mode", "x", "--unset")
    assert json.loads(run(live, "mode")) == {"mode": "READWRITE"}


def test_deleting_asks_first(
    live: RegistryProcess, schema_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(live, "register", "gone", str(schema_file))
    monkeypatch.setattr("headgate.gateway.cli.confirmation.sys.stdin", Terminal("n\n"))
    with pytest.raises(typer.Exit) as refused:
        delete("gone", registry=live.url)
    assert refused.value.exit_code == 1
    assert "Delete gone? [y/N]" in capsys.readouterr().err
    monkeypatch.setattr("headgate.gateway.cli.confirmation.sys.stdin", Terminal("y\n"))
    delete("gone", registry=live.url)
    assert json.loads(capsys.readouterr().out) == [1]


def test_deleting_without_a_terminal_needs_yes(live: RegistryProcess, schema_file: Path) -> None:
    run(live, "register", "gone", str(schema_file))
    result = runner.invoke(app, ["delete", "gone", "--registry", live.url], input="y\n")
    assert (result.exit_code, "add --yes to confirm" in result.output) == (2, True)
    assert json.loads(run(live, "delete", "gone", "--yes"))[-1] >= 1
    run(live, "delete", "gone", "--permanent", "--yes")
    run(live, "get", "gone", code=3)


def test_a_copy_keeps_ids_and_settings(live: RegistryProcess, tmp_path: Path) -> None:
    run(live, "register", "copied", "-", input=record("a"))
    run(live, "config", "copied", "--level", "FULL")
    file = tmp_path / "all.ndjson"
    run(live, "export", str(file))
    with running_registry(tmp_path / "other") as other:
        run(other, "import", str(file))
        for command in (("get", "copied", "--json"), ("config", "copied")):
            assert json.loads(run(other, *command)) == json.loads(run(live, *command))
        again = tmp_path / "again.ndjson"
        run(other, "export", str(again))
        assert sorted(again.read_text().splitlines()) == sorted(file.read_text().splitlines())
        run(other, "import", "-", input='{"kind":"schema"}\n', code=1)


def test_bad_usage_and_an_absent_registry_have_their_codes(live: RegistryProcess, tmp_path: Path) -> None:
    run(live, "register", "s", str(tmp_path / "absent.avsc"), code=2)
    run(live, "register", "s", "-", "--reference", "nonsense", input=record("a"), code=2)
    result = runner.invoke(app, ["list", "--registry", "http://127.0.0.1:9"])
    assert result.exit_code == 4
    assert "cannot be reached" in result.stderr
