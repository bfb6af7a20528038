"""Environment variables of options, and their keys in settings files. Both are derived from the option name.

An option that corresponds to a setting (`--bootstrap-server`) declares its variable, which all commands share. The
others get a variable from the names of command and option: `HEADGATE_TOPIC_CREATE_PARTITIONS`.
"""

from collections.abc import Iterator
from typing import Any

ENVIRONMENT_PREFIX = "HEADGATE"


def assign_environment_variables(command: Any, path: tuple[str, ...] = ()) -> None:
    """Assign an environment variable to every option of the subcommands of `command`."""
    for option in options(command):
        # Not for options of the top level: container images often set HEADGATE_VERSION.
        if path and option.envvar is None:
            option.envvar = "_".join([ENVIRONMENT_PREFIX, *path, key_of(option)]).upper().replace("-", "_")
    for name, inner in getattr(command, "commands", {}).items():
        assign_environment_variables(inner, (*path, name))


def options(command: Any) -> Iterator[Any]:
    """The options of a command, except --help."""
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            yield parameter


def key_of(option: Any) -> str:
    """The key in a settings file: `key_separator` for `--key-separator`."""
    return str(max(option.opts, key=len)).removeprefix("--").replace("-", "_")
