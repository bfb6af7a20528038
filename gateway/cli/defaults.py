"""Option defaults from the settings files.

Precedence: command line, environment, settings files, built-in default. A table named after a command
(`[topic.create]`) applies to that command. Shared settings such as `bootstrap_server` apply to all commands.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from headgate.gateway.cli.environment_variables import ENVIRONMENT_PREFIX, key_of, options
from headgate.gateway.settings.files import SETTING_NAMES, SettingsError, SettingsFile

# Settings that client commands accept as options. `headgate up` reads the other settings itself.
SHARED = ("bootstrap_server", "kafka_config", "registry_url")


def command_defaults(command: Any, files: list[SettingsFile]) -> dict[str, Any]:
    """Defaults for `command` and its subcommands. Raises SettingsError."""
    defaults: dict[str, Any] = {}
    for file in reversed(files):
        _check_names(file, [*SETTING_NAMES, *command.commands])
        _merge(defaults, _of_command(command, file, file.values, ()))
    return defaults


def options_set(
    command: Any, files: list[SettingsFile], environment: Mapping[str, str], path: tuple[str, ...] = ()
) -> list[tuple[str, object, str]]:
    """Command options that the environment or a file sets: dotted name, value and source."""
    settings = {f"{ENVIRONMENT_PREFIX}_{name.upper()}" for name in SETTING_NAMES}
    found: list[tuple[str, object, str]] = []
    for option in options(command) if path else ():
        name = ".".join((*path, key_of(option)))
        tables = [(file, _table(file, path)) for file in files]
        if option.envvar not in settings and environment.get(option.envvar):
            found.append((name, environment[option.envvar], f"environment {option.envvar}"))
        else:
            given = [(name, table[key_of(option)], str(file.path)) for file, table in tables if key_of(option) in table]
            found += given[:1]
    for name, subcommand in getattr(command, "commands", {}).items():
        found += options_set(subcommand, files, environment, (*path, name))
    return found


def file_of(files: list[SettingsFile], path: tuple[str, ...], option: Any) -> str | None:
    """The file, table and key that set `option` of the command at `path`, or None."""
    for file in files:
        if key_of(option) in _table(file, path):
            return f"{file.path}, [{'.'.join(path)}] {key_of(option)}"
    return None


def _table(file: SettingsFile, path: tuple[str, ...]) -> Mapping[str, Any]:
    table: Mapping[str, Any] = file.values
    for name in path:
        table = table.get(name, {})
    return table


def _check_names(file: SettingsFile, known: list[str]) -> None:
    """Reject unknown names: they are usually typing errors."""
    for name in file.values:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise SettingsError(f"{file.path}: {name!r} is neither a setting nor a command{hint}")


def _of_command(command: Any, file: SettingsFile, table: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    found: dict[str, Any] = {}
    if path:
        names = {key_of(option): str(option.name) for option in options(command)}
        unknown = sorted(set(table) - set(names) - set(subcommands))
        if unknown:
            raise SettingsError(f"{file.path}: [{'.'.join(path)}] has no option {unknown[0]!r}")
        found = _shared(command, file) | {names[key]: value for key, value in table.items() if key in names}
    for name, subcommand in subcommands.items():
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{file.path}: {'.'.join((*path, name))} is a command, so it must be a table")
        found[name] = _of_command(subcommand, file, inner, (*path, name))
    return found


def _shared(command: Any, file: SettingsFile) -> dict[str, Any]:
    """Values of options that share their environment variable with a setting. Raises SettingsError."""
    settings = {f"{ENVIRONMENT_PREFIX}_{name.upper()}": name for name in SHARED if name in file.values}
    for name in settings.values():
        if not isinstance(file.values[name], str):
            raise SettingsError(f"{file.path}: {name} must be a string")
    return {
        str(option.name): file.values[settings[option.envvar]]
        for option in options(command)
        if option.envvar in settings
    }


def _merge(target: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value
