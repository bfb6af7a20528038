"""The environment twin of every option, and its key in the settings files: both are called like the option itself.

An option that stands for a setting (`--bootstrap-server`) names its variable and shares it with all commands; any other
has one of its own, made of the command's and the option's name: `HEADGATE_TOPIC_CREATE_PARTITIONS`.
"""

from collections.abc import Iterator
from typing import Any

ENVIRONMENT_PREFIX = "HEADGATE"


def assign_environment_variables(command: Any, path: tuple[str, ...] = ()) -> None:
    """Gives every option below `command` its variable."""
    for option in options(command):
        # HEADGATE_VERSION and the like are what images call what they carry; the parser's own options have no twin.
        if path and option.envvar is None:
            option.envvar = "_".join([ENVIRONMENT_PREFIX, *path, key_of(option)]).upper().replace("-", "_")
    for name, inner in getattr(command, "commands", {}).items():
        assign_environment_variables(inner, (*path, name))


def options(command: Any) -> Iterator[Any]:
    """The options of a command itself, the parser's --help aside."""
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            yield parameter


def key_of(option: Any) -> str:
    """`--key-separator` is `key_separator` in a file."""
    return str(max(option.opts, key=len)).removeprefix("--").replace("-", "_")
