"""Reads the commands, arguments and options of `headgate` from its parser."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from headgate.gateway.cli.app import parser

# Standard options of the parser.
_PARSERS_OWN = frozenset({"help", "install_completion", "show_completion"})


@dataclass(frozen=True, slots=True)
class Parameter:
    names: tuple[str, ...]
    metavar: str
    help: str
    default: str
    environment: tuple[str, ...]
    is_argument: bool


@dataclass(frozen=True, slots=True)
class Command:
    path: tuple[str, ...]
    help: str
    parameters: tuple[Parameter, ...]
    is_group: bool

    @property
    def name(self) -> str:
        return " ".join(self.path)

    @property
    def usage(self) -> str:
        arguments = [parameter.metavar for parameter in self.parameters if parameter.is_argument]
        return " ".join([self.name, *arguments, "[OPTIONS]"])


def commands() -> list[Command]:
    """All commands, groups before their subcommands."""
    return list(_walk(parser(), ("headgate",)))


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[Command]:
    inner = getattr(command, "commands", {})
    parameters = [each for each in command.params if each.name not in _PARSERS_OWN]
    yield Command(
        path,
        " ".join((command.help or "").split()),
        tuple(_parameter(each) for each in parameters),
        bool(inner),
    )
    for name, subcommand in inner.items():
        yield from _walk(subcommand, (*path, name))


def _parameter(parameter: Any) -> Parameter:
    is_argument = parameter.param_type_name == "argument"
    text, default = _help_and_default(parameter)
    return Parameter(
        () if is_argument else tuple(sorted(parameter.opts, key=len)),
        _metavar(parameter, is_argument),
        text,
        default,
        tuple([parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or ()),
        is_argument,
    )


def _help_and_default(parameter: Any) -> tuple[str, str]:
    """Help text and default. A dynamic default is part of the help: `... [default: the cluster's].`"""
    text = " ".join((getattr(parameter, "help", None) or "").split())
    told = re.search(r" \[default: ([^\]]+)\]", text)
    if told is not None:
        return text.replace(told[0], ""), told[1]
    default = parameter.default
    if default is None or default is False or default in ([], ()) or callable(default):
        return text, ""
    return text, f"`{default}`"


def _metavar(parameter: Any, is_argument: bool) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    if is_argument:
        name = str(parameter.metavar or parameter.name).upper() + ("..." if parameter.nargs != 1 else "")
        return name if parameter.required else f"[{name}]"
    if parameter.metavar:
        return str(parameter.metavar)
    taken = parameter.type_descriptor.annotation
    taken = next(iter(get_args(taken)), taken)
    if isinstance(taken, type) and issubclass(taken, Enum):
        return "|".join(str(choice.value) for choice in taken)
    return {int: "N", str: "TEXT", Path: "PATH"}.get(taken, str(parameter.name).upper())
