"""`headgate schema plan|apply` with a live registry, the pre-commit hook and the GitHub Action."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.gateway.schemas.registry_api import RegistryApi, RegistryRefused
from tests.clients.registry.schema_cli import Cli
from tests.live.installation import PYTHONPATH, ROOT
from tests.live.registry import RegistryProcess

MONEY = 'syntax = "proto3"; package shop; message Money { %s cents = 1; }'
ORDER = 'syntax = "proto3"; package shop; import "money.proto"; message Order { Money total = 1; %s }'
MANIFEST = """
compatibility = "FULL"
[subjects.{0}-order]
file = "order.proto"
references = {{ "money.proto" = "{0}-money" }}
[subjects.{0}-money]
file = "money.proto"
[subjects.{0}-customer]
file = "customer.json"
compatibility = "BACKWARD_TRANSITIVE"
"""


class Folder:
    def __init__(self, path: Path, prefix: str) -> None:
        self.path = path
        self.prefix = prefix
        self.write(**{"schemas.toml": MANIFEST.format(prefix), "money.proto": MONEY % "int64"})
        self.write(**{"order.proto": ORDER % "", "customer.json": json.dumps(customer("string"))})

    def write(self, **contents: str) -> None:
        for name, text in contents.items():
            (self.path / name).write_text(text)

    def by_subject(self, document: Any, key: str) -> list[Any]:
        """The values of order, money and customer."""
        found = {one["subject"]: one[key] for one in document["subjects"]}
        return [found[f"{self.prefix}-{name}"] for name in ("order", "money", "customer")]


def customer(type: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"name": {"type": type}}, "additionalProperties": False}


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    # The registry is shared by the tests of this file.
    return Folder(tmp_path, request.node.name.removeprefix("test_"))


def test_a_folder_is_planned_applied_and_applied_again(live: RegistryProcess, cli: Cli, folder: Folder) -> None:
    planned = cli.json(live, "plan")
    assert folder.by_subject(planned, "action") == ["new subject"] * 3
    assert folder.by_subject(planned, "level") == ["FULL", "FULL", "BACKWARD_TRANSITIVE"]
    assert cli.json(live, "list", folder.prefix) == []
    applied = cli.json(live, "apply")
    assert folder.by_subject(applied, "state") == ["registered"] * 3
    assert cli.json(live, "config", f"{folder.prefix}-order") == {"compatibilityLevel": "FULL"}
    (reference,) = cli.json(live, "get", f"{folder.prefix}-order")["references"]
    assert reference == {"name": "money.proto", "subject": f"{folder.prefix}-money", "version": 1}
    assert folder.by_subject(cli.json(live, "plan", "--exit-code"), "action") == ["unchanged"] * 3
    assert folder.by_subject(cli.json(live, "apply"), "state") == ["unchanged"] * 3


def test_a_change_also_registers_the_schemas_that_refer_to_it(live: RegistryProcess, cli: Cli, folder: Folder) -> None:
    cli(live, "apply")
    folder.write(**{"money.proto": MONEY % "uint64"})
    cli(live, "plan", "--exit-code", code=5)
    rows = [row.split() for row in cli(live, "plan").splitlines()]
    assert rows[0] == ["SUBJECT", "FILE", "ACTION", "LEVEL", "COMPATIBLE"]
    assert [f"{folder.prefix}-order", "order.proto", "new", "version", "FULL", "yes"] in rows
    assert folder.by_subject(cli.json(live, "apply"), "version") == [2, 2, 1]
    assert cli.json(live, "get", f"{folder.prefix}-order")["references"][0]["version"] == 2


def test_a_breaking_change_is_rejected_and_nothing_is_registered(
    live: RegistryProcess, cli: Cli, folder: Folder
) -> None:
    cli(live, "apply")
    folder.write(**{"money.proto": MONEY % "int32", "customer.json": json.dumps(customer("integer"))})
    told = cli(live, "plan", code=3)
    assert "TYPE_CHANGED #/properties/name (version 1, new-reads-old)" in told
    assert f"error: rejected: {folder.prefix}-customer" in cli.err
    assert folder.by_subject(cli.json(live, "apply", code=3), "rejected") == [False, False, True]
    assert [one["version"] for one in cli.json(live, "versions", f"{folder.prefix}-money")] == [1]


def test_a_transitive_level_compares_all_versions(live: RegistryProcess, cli: Cli, folder: Folder) -> None:
    cli(live, "apply")
    folder.write(**{"customer.json": json.dumps({})})
    cli(live, "apply")
    folder.write(**{"customer.json": json.dumps({"not": {}})})
    told = cli(live, "plan", code=3)
    assert "(version 1, new-reads-old)" in told
    assert "(version 2, new-reads-old)" in told


def test_a_level_change_is_planned_and_applied(live: RegistryProcess, cli: Cli, folder: Folder) -> None:
    cli(live, "apply")
    folder.write(**{"schemas.toml": MANIFEST.format(folder.prefix).replace("FULL", "NONE")})
    assert "FULL → NONE" in cli(live, "plan")
    assert folder.by_subject(cli.json(live, "apply"), "state") == ["level set", "level set", "unchanged"]
    assert cli.json(live, "config", f"{folder.prefix}-money") == {"compatibilityLevel": "NONE"}
    folder.write(**{"money.proto": MONEY % "string"})
    assert folder.by_subject(cli.json(live, "apply"), "state") == ["registered", "registered", "unchanged"]


def test_every_failure_is_reported_and_stops_its_dependents_only(
    live: RegistryProcess, cli: Cli, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = RegistryApi.ask

    def failing(self: RegistryApi, method: str, *path: str, **options: Any) -> Any:
        if method == "POST" and path[1].endswith("-money") and path[-1] == "versions":
            raise RegistryRefused(422, "read-only")
        return ask(self, method, *path, **options)

    monkeypatch.setattr(RegistryApi, "ask", failing)
    applied = cli.json(live, "apply", code=1)
    assert folder.by_subject(applied, "problem") == ["a referenced schema was not registered", "read-only", ""]
    assert f"error: not applied: {folder.prefix}-money, {folder.prefix}-order" in cli.err
    monkeypatch.undo()


def test_an_invalid_schema_is_rejected(live: RegistryProcess, cli: Cli, folder: Folder) -> None:
    folder.write(**{"money.proto": "message {"})
    assert folder.by_subject(cli.json(live, "plan", code=3), "action") == ["invalid", "invalid", "new subject"]
    assert "money.proto: " in cli(live, "apply", code=3)
    assert cli.json(live, "list", folder.prefix) == []
    folder.write(**{"schemas.toml": "nonsense"})
    cli(live, "plan", code=2)
    assert "schemas.toml is not TOML" in cli.err


@pytest.fixture
def shell(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> "Shell":
    return Shell(folder.path, tmp_path_factory.mktemp("bin"))


class Shell:
    """Runs shell commands in a repository whose first commit contains the folder."""

    def __init__(self, repository: Path, programs: Path) -> None:
        self._repository = repository
        script = programs / "headgate"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headgate "$@"\n')
        script.chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": PYTHONPATH,
            "HOME": str(programs),
        }
        self("git init -q -b main && git add -A && git -c user.name=ada -c user.email=a@b.example commit -q -m first")

    def __call__(self, command: str, code: int = 0, **environment: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self._repository,
            env=self._environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (command, done.stdout, done.stderr)
        return done.stdout


def test_the_pre_commit_hook_rejects_a_breaking_change(shell: Shell, folder: Folder) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    for name in ("schemas.toml", "order.proto", "a/b/customer.json"):
        assert re.search(hook["files"], name)
    folder.write(**{"money.proto": MONEY % "uint32"})
    assert "new version" in shell(hook["entry"])
    folder.write(**{"money.proto": MONEY % "string"})
    assert "FIELD_SCALAR_KIND_CHANGED" in shell(f"{hook['entry']} .", code=3)


def run_action(shell: Shell, code: int = 0, **inputs: str) -> list[str]:
    """Run the steps whose condition holds, until one fails with `code`. Returns the names of the steps."""
    action = yaml.safe_load((ROOT / ".github/actions/schemas/action.yml").read_text())
    values = {name: str(spec["default"]) for name, spec in action["inputs"].items()} | inputs
    expressions = {f"inputs.{name}": value for name, value in values.items()}
    expressions["github.action_path"] = str(ROOT / ".github/actions/schemas")
    steps = []
    for step in action["runs"]["steps"]:
        condition = re.fullmatch(r"(\S+) != ''", step.get("if", "github.action_path != ''"))
        assert condition is not None
        if expressions[condition[1]]:
            environment = {n: expressions[re.fullmatch(r"\$\{\{ (\S+) \}\}", v)[1]] for n, v in step["env"].items()}  # type: ignore[index]
            assert "${{" not in step["run"], "an expression in a script is an injection"
            steps.append(step["name"])
            is_last = code != 0 and len(steps) == 2
            shell(step["run"], code if is_last else 0, **environment)
            if is_last:
                break
    return steps


def test_the_github_action_compares_with_git_and_the_registry(
    live: RegistryProcess, shell: Shell, folder: Folder
) -> None:
    assert run_action(shell, against="main", registry=live.url) == [
        *("Install Headgate", "Compare with git", "Compare with the registry"),
    ]
    folder.write(**{"customer.json": json.dumps(customer("integer"))})
    assert run_action(shell, against="main", directory=".", code=3) == ["Install Headgate", "Compare with git"]
    folder.write(**{"customer.json": "{"})
    assert run_action(shell, against="", registry=live.url, code=3)[-1] == "Compare with the registry"
