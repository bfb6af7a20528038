"""Errors in settings name the source of the value."""

from pathlib import Path

import pytest

from headgate.gateway.cli.app import run


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("content", "command", "place"),
    [
        ("broker_port = 99999", ["config", "show"], ""),
        ("broker_port = ", ["topic", "list"], ""),
        ("registry_url = 3", ["schema", "list"], "registry_url"),
        ("[up]\nbroker_port = 99999", ["up"], "[up] broker_port"),
        ("[topic.create]\npartitions = 'many'", ["topic", "create", "orders"], "[topic.create] partitions"),
    ],
)
def test_a_bad_file_is_named_and_no_command_that_fails_too_is_suggested(
    content: str, command: list[str], place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "headgate.toml").write_text(f"{content}\n")
    assert run(command) == 2
    printed = capsys.readouterr().err
    assert str(folder / "headgate.toml") in printed
    assert place in printed
    assert "config show" not in printed
    assert "command line" not in printed


def test_a_bad_environment_variable_and_a_bad_flag_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_BROKER_CONFIG", "{bad")
    assert run(["config", "show"]) == 2
    assert "environment HEADGATE_BROKER_CONFIG" in capsys.readouterr().err
    assert run(["up", "--proxy-port", "99999"]) == 2
    assert "(set by command line)" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["broker_port = ", "nonsense = 1", "[topic.create]\npartition = 3"])
@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["topic", "--help"], ["topic", "create", "--help"], ["-h"]],
    ids=" ".join,
)
def test_help_and_version_work_with_an_invalid_file(
    content: str, arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "headgate.toml").write_text(content)
    assert run(arguments) == 0
    printed = capsys.readouterr()
    assert "headgate" in printed.out
    assert "error" not in printed.err
    # Not an option here, but the key of a record.
    assert run(["produce", "orders", "-k", "--help", "-v", "x"]) == 2
    assert "headgate.toml" in capsys.readouterr().err
