"""`python -m headgate.registry --listen 127.0.0.1:8081 --data-dir DIR`: the schema registry alone."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from headgate.registry.api.server import access_settings, open_registry, serve
from headgate.registry.errors import StoreFailed
from headgate.registry.model import Level
from headgate.registry.settings import RegistrySettings


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.registry", description="A schema registry on one SQLite file."
    )
    parser.add_argument("--listen", default="127.0.0.1:8081", metavar="HOST:PORT")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--compatibility-level", type=Level, choices=list(Level), default=Level.BACKWARD)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the HTTP server")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop when standard input ends, as on SIGTERM")
    arguments = parser.parse_args()
    os.umask(0o077)  # The store is for this user alone.
    host, _, port = arguments.listen.rpartition(":")
    settings = RegistrySettings(compatibility_level=arguments.compatibility_level)
    try:
        access = access_settings(host.strip("[]"), dict(pair.partition("=")[::2] for pair in arguments.set))
    except ValueError as error:
        print(f"registry: {error}", file=sys.stderr)
        return 2
    try:
        registry = open_registry(arguments.data_dir, settings)
    except StoreFailed as error:
        print(error, file=sys.stderr)
        return 1

    async def run() -> None:
        listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        listening.add_done_callback(
            lambda bound: print(f"listening on http://{host}:{bound.result()}", file=sys.stderr, flush=True)
        )
        if arguments.stop_at_eof:
            _terminate_at_end_of_input(asyncio.get_running_loop())
        await serve(registry, host.strip("[]"), int(port), listening, access)

    # uvicorn raises the signal again once it has stopped: the default action would end the process with the store open.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())
    except OSError as error:
        print(f"registry: {error}", file=sys.stderr)
        return 1
    return 0


def _terminate_at_end_of_input(loop: asyncio.AbstractEventLoop) -> None:
    """The other end of a pipe closes however its owner ends, kill -9 included; what it writes means nothing."""
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(descriptor, read)


if __name__ == "__main__":
    sys.exit(main())
