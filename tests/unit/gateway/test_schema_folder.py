"""Folders of schemas: the manifest, files of the working tree and of git, and hostile content of both."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.gateway.cli.app import run
from headgate.gateway.schemas import files as folder_files
from headgate.gateway.schemas.files import FolderFiles, GitFiles
from headgate.gateway.schemas.folder import LocalSchema, load_folder
from headgate.gateway.schemas.manifest import InvalidManifest, parse_manifest
from headgate.registry.languages import Languages

MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "%s"}]}'
ORDER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "total", "type": "shop.Money"}]}'
MANIFEST = """
[subjects.orders-value]
file = "order.avsc"
references = { "shop.Money" = "money" }
[subjects.money]
file = "common/money.avsc"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose first commit contains two schemas."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "repository" / "schemas"
    (folder / "common").mkdir(parents=True)
    (folder / "schemas.toml").write_text(MANIFEST)
    (folder / "order.avsc").write_text(ORDER)
    (folder / "common" / "money.avsc").write_text(MONEY % "int")
    git(folder.parent, "init", "-q", "-b", "main")
    commit(folder)
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def load(folder: Path) -> list[LocalSchema]:
    return load_folder(FolderFiles(folder), Languages())


def problems(folder: Path) -> dict[str, str]:
    return {one.declared.subject: one.problem for one in load(folder) if one.problem}


@pytest.fixture
def check(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def check(code: int = 0, against: str = "git:main") -> dict[str, Any]:
        """The result for each subject."""
        got = run(["schema", "check", "--against", against, str(folder), "--json"])
        printed = capsys.readouterr()
        assert got == code, printed
        return {one["subject"]: one for one in json.loads(printed.out)["subjects"]}

    return check


def actions(checked: dict[str, Any]) -> dict[str, str]:
    return {subject: one["action"] for subject, one in checked.items()}


def test_referenced_schemas_come_first(folder: Path) -> None:
    loaded = load(folder)
    assert [one.declared.subject for one in loaded] == ["money", "orders-value"]
    assert all(one.schema is not None for one in loaded)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = ", "not TOML"),
        ("[" * 5000, "not TOML"),
        ("colour = 1", "unknown key 'colour'"),
        ("subjects = 1", "subjects must be a table"),
        ("[subjects]\na = 1", "a must be a table"),
        ("[subjects.a]\nfile = 'a.xml'", "must end in .avsc"),
        ("[subjects.a]\nfile = '../a.avsc'", "inside the folder"),
        ("[subjects.a]\nfile = '/etc/a.avsc'", "inside the folder"),
        ("[subjects.a]\nfile = 'a\\u0000.avsc'".replace("'", '"'), "inside the folder"),
        ("[subjects.a]\nfile = 3", "inside the folder"),
        ("[subjects.a]\nfile = 'a.avsc'\ncompatibility = 'SIDEWARD'", "a: compatibility must be"),
        ("compatibility = 3", "compatibility must be"),
        ("[subjects.a]\nfile = 'a.avsc'\nreferences = { x = 'b' }", "no subject 'b'"),
        ("[subjects.a]\nfile = 'a.avsc'\nreferences = { x = 3 }", "names to subjects"),
        ('[subjects."a\\u001b"]\nfile = "a.avsc"', "not a valid subject|nvalid"),
        ("\n".join(f"[subjects.s{number}]" for number in range(10_001)), "more than 10000 subjects"),
    ],
)  # fmt: skip
def test_an_invalid_manifest_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidManifest, match=complaint):
        parse_manifest(text.encode())


def test_a_manifest_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="not UTF-8"):
        parse_manifest(b"a = '\xff'")


def test_a_cycle_of_references_is_refused(folder: Path) -> None:
    (folder / "schemas.toml").write_text(MANIFEST + "references = { x = 'orders-value' }\n")
    with pytest.raises(
        InvalidManifest, match=r"cycle: (money → orders-value → money|orders-value → money → orders-value)"
    ):
        load(folder)


def test_a_missing_file_or_folder_is_named(folder: Path) -> None:
    (folder / "common" / "money.avsc").unlink()
    assert problems(folder) == {
        "money": "common/money.avsc does not exist",
        "orders-value": "the referenced subject money is invalid",
    }
    with pytest.raises(InvalidManifest, match="cannot read the folder"):
        FolderFiles(folder / "nothing")
    with pytest.raises(InvalidManifest, match=r"schemas.toml does not exist"):
        load(folder / "common")


def test_symbolic_links_pipes_and_large_files_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = folder.parent / "secret.avsc"
    secret.write_text(MONEY % "int")
    order = folder / "order.avsc"
    order.unlink()
    order.symlink_to(secret)
    assert "symbolic link" in problems(folder)["orders-value"]
    order.unlink()
    os.mkfifo(order)
    assert "not a regular file" in problems(folder)["orders-value"]
    order.unlink()
    order.write_bytes(b" " * (folder_files.FILE_BYTES_MAX + 1))
    assert "is larger than" in problems(folder)["orders-value"]
    order.write_bytes(b'{"type": "\xff"}')
    assert "not UTF-8, at byte 10" in problems(folder)["orders-value"]
    order.write_text('{"type": "nothing"}')
    assert "order.avsc: " in problems(folder)["orders-value"]
    (folder / "common").rename(folder.parent / "common")
    (folder / "common").symlink_to(folder.parent / "common")
    assert "symbolic link" in problems(folder)["money"]
    monkeypatch.setattr(folder_files, "TOTAL_BYTES_MAX", 10)
    with pytest.raises(InvalidManifest, match="more than 10 bytes"):
        load(folder)


def test_symbolic_links_and_large_files_of_a_revision_are_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link.avsc").symlink_to("order.avsc")
    (folder / "größe.avsc").write_text("x")
    commit(folder)
    monkeypatch.setattr(folder_files, "FILE_BYTES_MAX", len(MONEY % "int"))
    names = ["link.avsc", "order.avsc", "absent.avsc", "größe.avsc", "common/money.avsc"]
    found = GitFiles(folder, "HEAD").read(names)
    assert [str(found[name])[:10] for name in names[:3]] == ["is a symbo", "is larger ", "does not e"]
    assert (found["größe.avsc"], found["common/money.avsc"]) == (b"x", (MONEY % "int").encode())
    monkeypatch.setattr(folder_files, "TOTAL_BYTES_MAX", 10)
    with pytest.raises(InvalidManifest, match="more than 10 bytes"):
        GitFiles(folder, "HEAD").read(["common/money.avsc"])


def test_an_unchanged_folder_is_compatible(check: Callable[..., dict[str, Any]]) -> None:
    assert actions(check()) == {"money": "unchanged", "orders-value": "unchanged"}


def test_changes_are_compared_with_the_revision(folder: Path, check: Callable[..., dict[str, Any]]) -> None:
    (folder / "common" / "money.avsc").write_text(MONEY % "long")
    (folder / "new.proto").write_text('syntax = "proto3"; message New { int32 a = 1; }')
    (folder / "schemas.toml").write_text(MANIFEST + "[subjects.new]\nfile = 'new.proto'\n")
    assert actions(check()) == {"money": "new version", "new": "new subject", "orders-value": "unchanged"}
    commit(folder)
    assert set(actions(check()).values()) == {"unchanged"}
    assert actions(check(against="git:main~1"))["new"] == "new subject"


def test_a_breaking_change_is_rejected_with_its_reasons_also_through_a_reference(
    folder: Path, check: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "common" / "money.avsc").write_text(MONEY % "string")
    checked = check(code=3)
    assert [one["rejected"] for one in checked.values()] == [True, True]
    (found,) = checked["orders-value"]["incompatibilities"]
    assert (found["kind"], found["version"]) == ("TYPE_MISMATCH", "git:main")
    assert run(["schema", "check", "--against", "git:main", str(folder)]) == 3
    printed = capsys.readouterr()
    assert "TYPE_MISMATCH /fields/0/type (git:main, new-reads-old): a reader of string cannot read int" in printed.out
    assert "error: rejected: money, orders-value" in printed.err


@pytest.mark.parametrize(("level", "code"), [("FULL", 3), ("forward", 3), ("BACKWARD", 0), ("NONE", 0)])
def test_the_level_of_the_manifest_decides(
    level: str, code: int, folder: Path, check: Callable[..., dict[str, Any]]
) -> None:
    (folder / "common" / "money.avsc").write_text(MONEY % "long")
    (folder / "schemas.toml").write_text(f"compatibility = '{level}'\n{MANIFEST}")
    check(code=code)


def test_another_language_is_not_compatible(folder: Path, check: Callable[..., dict[str, Any]]) -> None:
    (folder / "money.json").write_text('{"type": "object"}')
    (folder / "schemas.toml").write_text("[subjects.money]\nfile = 'money.json'\n")
    checked = check(code=3)
    assert checked["money"]["messages"] == ["Incompatible because of different schema type"]
    assert checked["orders-value"]["action"] == "not in the folder"


def test_forgotten_files_are_reported_with_escaped_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "for\x1b[2Jgotten.avsc").write_text("x")
    (folder / "package.json").write_text("{}")
    (folder / os.fsdecode(b"\xff.proto")).write_text("x")
    assert run(["schema", "check", "--against", "git:main", str(folder)]) == 0
    told = capsys.readouterr().err
    assert "for\\x1b[2Jgotten.avsc is not in schemas.toml" in told
    assert "\\udcff.proto is not in schemas.toml" in told
    assert "package.json" not in told


@pytest.mark.parametrize("against", ["main", "git:", "svn:main", "git:nothing", "git:--output=x", "git:-h", "git:a\0b"])
def test_an_unknown_revision_is_a_usage_error(
    against: str, check: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["schema", "check", "--against", against, str(folder)]) == 2
    assert "error: " in capsys.readouterr().err
    assert not list(folder.glob("x*"))


def test_a_repository_without_a_commit_has_no_earlier_schemas(
    folder: Path, tmp_path: Path, check: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / ".git").rename(tmp_path / "old")
    git(folder.parent, "init", "-q", "-b", "main")
    assert set(actions(check(against="git:HEAD")).values()) == {"new subject"}
    # Git hooks set it.
    monkeypatch.setenv("GIT_DIR", ".git")
    assert set(actions(check(against="git:HEAD")).values()) == {"new subject"}


def test_a_folder_outside_of_a_repository_is_a_usage_error(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.rename(tmp_path / "schemas")
    assert run(["schema", "check", "--against", "git:HEAD", str(tmp_path / "schemas")]) == 2
    assert "git" in capsys.readouterr().err
