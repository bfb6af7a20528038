"""`headgate schema config|mode`: settings of a subject, of a context or of the whole registry."""

from typing import Annotated, Any

import typer

from headgate.gateway.cli.completion import complete_subject
from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.options import DEFAULT_REGISTRY_URL, Json, RegistryUrl
from headgate.gateway.cli.output import print_json, print_table
from headgate.gateway.cli.schema.connection import registry_at

Scope = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT",
        help="A subject or `:.context:` [default: the whole registry].",
        autocompletion=complete_subject,
    ),
]


def config(
    subject: Scope = "",
    level: Annotated[str, typer.Option("--level", help="Set the compatibility level.")] = "",
    unset: Annotated[bool, typer.Option("--unset", help="Delete the configuration.")] = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Show or set configuration."""
    if level and unset:
        raise UsageError("--level and --unset exclude each other", next_step="use one of them")
    _show_or_change("config", subject, {"compatibility": level} if level else None, {}, unset, json, registry)


def mode(
    subject: Scope = "",
    new: Annotated[str, typer.Option("--set", help="READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Allow IMPORT although subjects exist.")] = False,
    unset: Annotated[bool, typer.Option("--unset", help="Delete the mode.")] = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Show or set the mode."""
    if new and unset:
        raise UsageError("--set and --unset exclude each other", next_step="use one of them")
    parameters = {"force": "true"} if force else {}
    _show_or_change("mode", subject, {"mode": new} if new else None, parameters, unset, json, registry)


def _show_or_change(
    noun: str,
    subject: str,
    change: dict[str, str] | None,
    parameters: dict[str, str],
    unset: bool,
    json: bool,
    registry: str,
) -> None:
    path = (noun, subject) if subject else (noun,)
    with registry_at(registry) as api:
        if unset:
            shown: Any = api.ask("DELETE", *path)
        elif change is not None:
            shown = api.ask("PUT", *path, json=change, params=parameters)
        else:
            shown = api.ask("GET", *path, params={"defaultToGlobal": "true"})
    shown = shown if isinstance(shown, dict) else {noun: shown}
    if json:
        print_json(shown)
    else:
        print_table(["SETTING", "VALUE"], list(shown.items()))
