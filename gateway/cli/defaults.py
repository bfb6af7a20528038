"""What the settings files say, as defaults for the options of each command.

The parser takes a flag, then the environment, then these, then the option's own default. A table named like a command
(`[topic.create]`) speaks for that command; the settings that commands share, like `bootstrap_server`, for all of them.
"""

from collections.abc import Mapping
from typing import Any

from gateway.settings.files import SettingsError, SettingsFile

# The settings that client commands take as options of the same name; what `headgate up` needs, it reads itself.
SHARED = frozenset({"bootstrap_server", "registry_url"})


def command_defaults(command: Any, files: list[SettingsFile]) -> dict[str, Any]:
    """For the parser of `command` and everything below it. Raises SettingsError."""
    defaults: dict[str, Any] = {}
    for file in reversed(files):
        _merge(defaults, _of_command(command, file, file.values, file.values, ()))
    return defaults


def _of_command(
    command: Any, file: SettingsFile, table: Mapping[str, Any], shared: Mapping[str, Any], path: tuple[str, ...]
) -> dict[str, Any]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    options = {str(parameter.name) for parameter in command.params}
    found: dict[str, Any] = {name: shared[name] for name in SHARED & options if name in shared}
    if path:
        unknown = set(table) - options - set(subcommands)
        if unknown:
            raise SettingsError(f"{file.path}: [{'.'.join(path)}] has no option {sorted(unknown)[0]!r}")
        found.update({name: value for name, value in table.items() if name in options})
    for name, subcommand in subcommands.items():
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{file.path}: {'.'.join((*path, name))} is a command, so it must be a table")
        found[name] = _of_command(subcommand, file, inner, shared, (*path, name))
    return found


def _merge(target: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value
