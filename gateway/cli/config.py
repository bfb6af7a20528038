"""`headgate config`: settings and their sources."""

import os
from pathlib import Path
from typing import Annotated

import typer

from headgate.gateway.cli.options import Json
from headgate.gateway.cli.output import print_json, print_table
from headgate.gateway.settings.masking import masked_values

app = typer.Typer(help="Show settings and their sources.", no_args_is_help=True)


@app.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Show the source of each value.")] = False,
    json: Json = False,
) -> None:
    """Print the settings, and all options that a settings file or the environment sets."""
    from headgate.gateway.cli.app import parser
    from headgate.gateway.cli.defaults import options_set
    from headgate.gateway.settings.files import settings_files
    from headgate.gateway.settings.model import Settings, load_settings, origins

    files = settings_files(Path.cwd(), os.environ)
    sources = origins(Settings, files, os.environ)
    shown = [(name, value, sources[name]) for name, value in load_settings({}).model_dump(mode="json").items()]
    shown += options_set(parser(), files, os.environ)
    shown = [(name, masked_values(value), where) for name, value, where in shown]
    if json:
        print_json({name: {"value": value, "origin": where} if origin else value for name, value, where in shown})
        return
    rows = [[name, _text(value), *([where] if origin else [])] for name, value, where in shown]
    print_table(["SETTING", "VALUE", *(["ORIGIN"] if origin else [])], rows)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return str(value)
