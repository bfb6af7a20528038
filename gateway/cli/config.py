"""`headgate config`: what the settings are and who set them."""

import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.options import Json
from gateway.cli.output import print_json, print_table

app = typer.Typer(help="What the settings are and where they come from.", no_args_is_help=True)


@app.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Tell where each value comes from.")] = False,
    json: Json = False,
) -> None:
    """Print the settings as commands run from here would see them."""
    from gateway.settings.files import settings_files
    from gateway.settings.model import Settings, load_settings, origins

    values = load_settings({}).model_dump(mode="json")
    sources = origins(Settings, settings_files(Path.cwd(), os.environ), os.environ)
    if json:
        shown = {name: {"value": values[name], "origin": sources[name]} for name in values}
        print_json(shown if origin else values)
        return
    rows = [[name, _text(value), *([sources[name]] if origin else [])] for name, value in values.items()]
    print_table(["SETTING", "VALUE", *(["ORIGIN"] if origin else [])], rows)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return str(value)
