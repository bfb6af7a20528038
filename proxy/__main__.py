"""`python -m proxy`: the REST proxy alone, as a process of its own."""

import argparse
import asyncio
import os
import signal
import socket
import sys

import uvicorn
import uvloop

from proxy.api.app import create_app
from proxy.settings import ProxySettings, UnknownSetting


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proxy", description="HTTP in front of any Kafka-protocol broker.")
    parser.add_argument("--listen", default="127.0.0.1:8082", metavar="HOST:PORT")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument("--registry-url", default="http://127.0.0.1:8081")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the proxy")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop when standard input ends, as on SIGTERM")
    arguments = parser.parse_args()
    given = {"bootstrap.servers": arguments.bootstrap_server, "schema.registry.url": arguments.registry_url}
    given |= dict(pair.partition("=")[::2] for pair in arguments.set)
    try:
        settings = ProxySettings.of(given)
    except UnknownSetting as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 2
    host, _, port = arguments.listen.rpartition(":")
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again once it has stopped; that is the end, not a fault.
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, host.strip("[]"), int(port), stop_at_eof=arguments.stop_at_eof))
    except OSError as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(settings: ProxySettings, host: str, port: int, *, stop_at_eof: bool) -> None:
    config = uvicorn.Config(
        create_app(settings),
        loop="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    if stop_at_eof:
        _terminate_at_end_of_input(asyncio.get_running_loop())
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        print(f"listening on http://{host}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


def _terminate_at_end_of_input(loop: asyncio.AbstractEventLoop) -> None:
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(descriptor, read)


if __name__ == "__main__":
    sys.exit(main())
