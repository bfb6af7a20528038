"""`headgate warm`: compile the columnar decoder ahead of time. Needs the `spark` extra."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.cli.options import Json
from headgate.gateway.cli.output import print_json, say


def warm(
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR", help="Store the code here. Set HEADGATE_CODE_DIR=DIR to use it."),
    ] = None,
    json: Json = False,
) -> None:
    """Compile the Avro decoder of Spark, for example into an image or an environment. Does nothing if it is stored."""
    from importlib.util import find_spec

    if find_spec("numba") is None:
        raise CommandError("Numba is not installed.", next_step="Run pip install 'headgate[spark]'.")
    from headgate.serdes.columnar.native import code_store
    from headgate.serdes.columnar.native.code_key import code_key
    from headgate.serdes.columnar.native.library import CodeLibrary, NotCompiled
    from headgate.serdes.columnar.native.signatures import SIGNATURES

    if directory is not None:
        os.environ[code_store.DIRECTORY_VARIABLE] = str(directory.absolute())
    missing = [kernel for kernel in SIGNATURES if code_store.place_of(kernel) is None]
    if missing and code_store.writable_directory() is None:
        raise CommandError(
            "The compiled decoder cannot be stored.",
            why=f"Not writable, or writable by other users: {', '.join(map(str, code_store.directories()))}.",
            next_step="Choose a directory of your own with --directory.",
        )
    started = time.monotonic()
    library = CodeLibrary()
    try:
        for kernel in SIGNATURES:
            library.wait(kernel)
    except NotCompiled as error:
        raise CommandError("The decoder was not compiled.", why=str(error)) from None
    seconds = round(time.monotonic() - started, 3)
    places = sorted({str(code_store.place_of(kernel)) for kernel in SIGNATURES})
    if json:
        print_json({"key": code_key(), "directories": places, "compiled": missing, "seconds": seconds})
    else:
        say(f"The decoder is compiled and stored in {', '.join(places)}.")
