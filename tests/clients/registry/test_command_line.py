"""`headgate schema` with a live registry."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.gateway.cli.app import run as run_command
from headgate.gateway.cli.completion import complete_subject
from headgate.gateway.cli.schema.schema_file import BYTES_MAX
from tests.clients.registry.schema_cli import Cli
from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryProcess, running_registry


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    file = tmp_path / "a.avsc"
    file.write_text(record("a"))
    return file


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_a_schema_is_registered_listed_and_shown(live: RegistryProcess, cli: Cli, schema_file: Path) -> None:
    id = cli(live, "register", "cli", str(schema_file)).strip()
    assert [line.split() for line in cli(live, "list", "cli").splitlines()] == [
        ["SUBJECT", "VERSION", "ID", "TYPE"],
        ["cli", "1", id, "AVRO"],
    ]
    assert json.loads(cli(live, "get", "cli")) == json.loads(record("a"))
    assert cli.json(live, "get", id, "--id")["subject"] == "cli"
    assert cli.json(live, "list", "cli")[0]["version"] == 1
    assert cli.json(live, "list", "nothing-like-it") == []


def test_versions_are_listed_with_their_state(live: RegistryProcess, cli: Cli, schema_file: Path) -> None:
    cli(live, "register", "many", str(schema_file))
    cli(live, "register", "many", "-", input=record("a", defaulted("b")))
    cli(live, "register", "many-more", str(schema_file))
    cli(live, "delete", "many", "1", "--yes")
    assert [row.split()[0] for row in cli(live, "versions", "many").splitlines()[1:]] == ["2"]
    rows = [row.split() for row in cli(live, "versions", "many", "--deleted").splitlines()[1:]]
    assert [(row[0], row[2], row[3], row[-1]) for row in rows] == [
        ("1", "AVRO", "0", "deleted"),
        ("2", "AVRO", "0", "active"),
    ]
    assert [one["version"] for one in cli.json(live, "versions", "many")] == [2]
    cli(live, "versions", "absent", code=3)
    assert "error: the registry has no such subject" in cli.err
    assert "why: Subject 'absent' not found" in cli.err
    assert "try: headgate schema list" in cli.err


def test_subjects_are_completed(live: RegistryProcess, cli: Cli, schema_file: Path) -> None:
    cli(live, "register", "completed-value", str(schema_file))

    def completed(registry: str) -> list[str]:
        return complete_subject(SimpleNamespace(params={"registry": registry}), "complet")  # type: ignore[arg-type]

    assert completed(live.url) == ["completed-value"]
    assert completed("127.0.0.1:9") == []


def test_a_check_exits_3_with_all_reasons(live: RegistryProcess, cli: Cli, schema_file: Path, tmp_path: Path) -> None:
    cli(live, "register", "checked", str(schema_file))
    bad = tmp_path / "bad.avsc"
    bad.write_text(record(("a", "int"), "b"))
    told = cli(live, "check", "checked", str(bad), code=3)
    assert "TYPE_MISMATCH /fields/0/type" in told
    assert "READER_FIELD_MISSING_DEFAULT_VALUE /fields/1" in told
    assert "give the field b a default" in told
    assert cli.json(live, "check", "checked", str(bad), code=3)["is_compatible"] is False
    good = record("a", defaulted("b"))
    assert cli(live, "check", "checked", "-", input=good) == ""


def test_a_refused_registration_explains_itself_like_a_check(
    live: RegistryProcess, cli: Cli, schema_file: Path, write: Callable[[str, str], str]
) -> None:
    cli(live, "register", "refusing", str(schema_file))
    bad = write("bad.avsc", record("b"))
    assert cli(live, "register", "refusing", bad, code=3) == ""
    assert "READER_FIELD_MISSING_DEFAULT_VALUE /fields/0 (version 1, new-reads-old)" in cli.err
    assert "give the field b a default" in cli.err
    assert "try: headgate schema diff refusing" in cli.err
    assert cli.json(live, "register", "refusing", bad, code=3)["is_compatible"] is False


def test_a_difference_names_each_change_and_its_effect(
    live: RegistryProcess, cli: Cli, schema_file: Path, write: Callable[[str, str], str]
) -> None:
    cli(live, "register", "differs", str(schema_file))
    cli(live, "diff", "differs", code=3)
    assert "has only version 1" in cli.err
    cli(live, "register", "differs", "-", input=record("a", defaulted("b")))
    for arguments in ([], ["1"], ["1", "2"]):
        shown = cli.json(live, "diff", "differs", *arguments, code=5)
        assert (shown["old"], shown["new"], shown["result"]) == ("1", "2", "compatible")
    (change,) = shown["changes"]
    assert (change["change"], change["path"], change["breaks_backward"]) == ("field added", "b", False)
    assert cli(live, "diff", "differs", "2", "latest") == ""
    assert "no changes" in cli.err
    bad = write("bad.avsc", record(("a", "int"), defaulted("b")))
    told = cli(live, "diff", "differs", bad, code=3).splitlines()
    assert told[1].split() == ["type", "changed", "a", "string", "int", "breaks", "breaks"]
    assert any(line.startswith("TYPE_MISMATCH /fields/0/type (version 2, new-reads-old)") for line in told)
    assert "not compatible at level BACKWARD" in cli.err
    removed = write("removed.avsc", record(defaulted("b")))
    cli(live, "diff", "differs", removed, code=5)
    cli(live, "diff", "differs", removed, "--level", "full", code=3)
    cli(live, "diff", "differs", "--level", "sideward", code=2)
    cli(live, "diff", "differs", "nowhere.avsc", code=2)
    cli(live, "diff", "differs", "7", code=3)


def test_a_difference_follows_references(live: RegistryProcess, cli: Cli, write: Callable[[str, str], str]) -> None:
    write("money.proto", 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }')
    order = 'syntax = "proto3"; package shop; import "money.proto"; message Order { Money total = 1; %s }'
    cli(live, "register", "money", "money.proto")
    reference = ("--reference", "money.proto=money@1")
    cli(live, "register", "order", write("order.proto", order % ""), *reference)
    write("order.proto", order % "int32 count = 2;")
    shown = cli.json(live, "diff", "order", "order.proto", *reference, code=5)
    assert [one["change"] for one in shown["changes"]] == ["field added"]


def test_settings_are_shown_and_set(live: RegistryProcess, cli: Cli) -> None:
    assert cli.json(live, "config", "x", "--level", "full") == {"compatibility": "FULL"}
    assert cli.json(live, "config", "x") == {"compatibilityLevel": "FULL"}
    assert cli(live, "config", "x").split() == ["SETTING", "VALUE", "compatibilityLevel", "FULL"]
    cli(live, "config", "x", "--unset", "--level", "full", code=2)
    cli(live, "config", "x", "--unset")
    cli(live, "config", "x", "--level", "sideward", code=1)
    assert "why: Invalid compatibility level" in cli.err
    assert cli.json(live, "mode", "x", "--set", "readonly") == {"mode": "READONLY"}
    cli(live, "mode", "x", "--unset")
    assert cli.json(live, "mode") == {"mode": "READWRITE"}


def test_deleting_asks_first(live: RegistryProcess, cli: Cli, schema_file: Path) -> None:
    cli(live, "register", "gone", str(schema_file))
    cli(live, "delete", "gone", input="n\n", terminal=True, code=3)
    assert "delete gone? [y/N]" in cli.err
    cli(live, "delete", "gone", input="y\n", terminal=True)
    assert "version 1 deleted" in cli.err


def test_deleting_without_a_terminal_needs_yes(live: RegistryProcess, cli: Cli, schema_file: Path) -> None:
    cli(live, "register", "gone", str(schema_file))
    cli(live, "delete", "gone", code=2, input="y\n")
    assert "add --yes to confirm" in cli.err
    assert cli.json(live, "delete", "gone", "--yes")["versions"][-1] >= 1
    cli(live, "delete", "gone", "--permanent", "--yes")
    cli(live, "get", "gone", code=3)


def test_a_copy_keeps_ids_and_settings(live: RegistryProcess, cli: Cli, tmp_path: Path) -> None:
    cli(live, "register", "copied", "-", input=record("a"))
    cli(live, "config", "copied", "--level", "FULL")
    file = tmp_path / "all.ndjson"
    cli(live, "export", str(file))
    with running_registry(tmp_path / "other") as other:
        cli(other, "import", str(file))
        for command in (("get", "copied"), ("config", "copied")):
            assert cli.json(other, *command) == cli.json(live, *command)
        again = tmp_path / "again.ndjson"
        cli(other, "export", str(again))
        assert sorted(again.read_text().splitlines()) == sorted(file.read_text().splitlines())
        cli(other, "import", "-", input='{"kind":"schema"}\n', code=1)


def test_bad_usage_and_an_absent_registry_have_their_codes(live: RegistryProcess, cli: Cli, tmp_path: Path) -> None:
    cli(live, "register", "s", str(tmp_path / "absent.avsc"), code=2)
    cli(live, "register", "s", "-", "--reference", "nonsense", input=record("a"), code=2)
    cli(live, "register", "s", "-", "--type", "xml", input=record("a"), code=2)
    cli(live, "register", "s", "-", input=" " * (BYTES_MAX + 1), code=2)
    assert "larger than" in cli.err
    cli(live, "register", "s", "-", input="{", code=1)
    assert "why: " in cli.err


def test_an_absent_registry_is_reported_with_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["schema", "list", "--registry", "127.0.0.1:9"]) == 4
    printed = capsys.readouterr().err
    assert "error: no schema registry responded at 127.0.0.1:9" in printed
    assert "try: start one with headgate up" in printed
