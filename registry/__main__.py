"""`python -m registry --listen 127.0.0.1:8081 --data-dir DIR`: the schema registry alone."""

import argparse
import asyncio
import sys
from pathlib import Path

import uvloop

from registry.api.server import open_registry, serve
from registry.errors import StoreFailed
from registry.model import Level
from registry.settings import RegistrySettings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m registry", description="A schema registry on one SQLite file.")
    parser.add_argument("--listen", default="127.0.0.1:8081", metavar="HOST:PORT")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--compatibility-level", type=Level, choices=list(Level), default=Level.BACKWARD)
    arguments = parser.parse_args()
    host, _, port = arguments.listen.rpartition(":")
    settings = RegistrySettings(compatibility_level=arguments.compatibility_level)
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
        await serve(registry, host.strip("[]"), int(port), listening)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
