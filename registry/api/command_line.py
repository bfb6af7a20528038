"""Command line of `python -m headgate.registry`."""

import argparse
import os
import sys
from pathlib import Path

from headgate.registry.api.server import access_settings, open_registry, serve
from headgate.registry.errors import StoreFailed
from headgate.registry.model import Level
from headgate.registry.settings import RegistrySettings
from headgate.web.server import run, split_listen_address


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.registry", description="Schema registry with an SQLite store."
    )
    parser.add_argument("--listen", default="127.0.0.1:8081", metavar="HOST:PORT")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--compatibility-level", type=Level, choices=list(Level), default=Level.BACKWARD)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the HTTP server")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop when standard input ends, as on SIGTERM")
    arguments = parser.parse_args()
    os.umask(0o077)  # Only this user may read the store.
    settings = RegistrySettings(compatibility_level=arguments.compatibility_level)
    try:
        host, port = split_listen_address(arguments.listen)
        access = access_settings(host, dict(pair.partition("=")[::2] for pair in arguments.set))
    except ValueError as error:
        print(f"registry: {error}", file=sys.stderr)
        return 2
    try:
        registry = open_registry(arguments.data_dir, settings)
    except StoreFailed as error:
        print(error, file=sys.stderr)
        return 1
    return run("registry", serve(registry, port, access, stop_at_eof=arguments.stop_at_eof))
