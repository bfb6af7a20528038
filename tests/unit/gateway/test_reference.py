from pathlib import Path

import pytest

from headgate.gateway.settings.model import Settings, environment_name
from tests.reference.__main__ import pages
from tests.reference.command_tree import Command, commands

DOCS = Path(__file__).resolve().parents[3] / "docs"
COMMANDS = commands()
SETTINGS = {environment_name(name) for name in Settings.model_fields}

# Commands that always print JSON.
ALWAYS_JSON = {"headgate schema export"}


@pytest.mark.parametrize("name", sorted(pages()))
def test_pages_are_current(name: str) -> None:
    stale = "is stale: run python -m tests.reference"
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], f"docs/{name} {stale}"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_argument_and_option_has_a_help_text(command: Command) -> None:
    assert command.help, f"{command.name} has no help"
    for parameter in command.parameters:
        assert parameter.help, f"{command.name} {parameter.names or parameter.metavar} has no help"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_option_has_an_environment_twin_of_its_name(command: Command) -> None:
    words = "_".join(command.path[1:]).upper().replace("-", "_")
    for parameter in command.parameters:
        if parameter.is_argument or parameter.names == ("--version",):
            continue
        longest = max(parameter.names, key=len).removeprefix("--").upper().replace("-", "_")
        (variable,) = parameter.environment
        assert variable in SETTINGS or variable == f"HEADGATE_{words}_{longest}"


def test_every_leaf_prints_json_when_asked() -> None:
    without = [
        command.name
        for command in COMMANDS
        if not command.is_group
        and command.name not in ALWAYS_JSON
        and not any("--json" in parameter.names for parameter in command.parameters)
    ]
    assert without == []


def test_everything_that_deletes_asks_or_needs_yes() -> None:
    deleting = [command for command in COMMANDS if command.path[-1] == "delete"]
    assert len(deleting) >= 2
    for command in deleting:
        assert any("--yes" in parameter.names for parameter in command.parameters), command.name
