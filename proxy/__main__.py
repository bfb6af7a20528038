"""`python -m headgate.proxy`: the REST proxy alone, as a process of its own."""

import argparse
import asyncio
import gc
import os
import signal
import socket
import sys
from types import FrameType

import uvicorn
import uvloop

from headgate.web.http_protocol import BoundedHttpProtocol
from headgate.proxy.api.app import create_app
from headgate.proxy.api.front import Front
from headgate.proxy.log_rate_limit import limit_client_log
from headgate.proxy.settings import ProxySettings, UnknownSetting
from headgate.web.settings import InvalidSetting


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.proxy", description="HTTP in front of any Kafka-protocol broker."
    )
    parser.add_argument("--listen", default="127.0.0.1:8082", metavar="HOST:PORT")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument(
        "--registry-url",
        default=os.environ.get("HEADGATE_REGISTRY_URL") or "http://127.0.0.1:8081",
        metavar="URL",
        help="the schema registry; an address with a password belongs in HEADGATE_REGISTRY_URL, because other users "
        "can read the command line",
    )
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
    except (InvalidSetting, UnknownSetting) as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 1
    return 0


class _Server(uvicorn.Server):
    """Tells the application that it is about to stop, before its connections are waited for."""

    def __init__(self, config: uvicorn.Config, front: Front) -> None:
        super().__init__(config)
        self._front = front

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._front.services.begin_stop()
        super().handle_exit(sig, frame)


async def _serve(settings: ProxySettings, host: str, port: int, *, stop_at_eof: bool) -> None:
    limit_client_log()
    front = create_app(settings, host)
    # What exists now lives as long as the process. Records by the thousand, none of them in a cycle, would have the
    # collector look at them again and again.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    config = uvicorn.Config(
        front,
        loop="none",
        http=BoundedHttpProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(settings.shutdown_graceful_ms // 1000, 1),
        ws_max_size=settings.producer_batch_bytes_max * 2,
    )
    if stop_at_eof:
        _terminate_at_end_of_input(asyncio.get_running_loop())
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        print(f"listening on http://{host}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        await _Server(config, front).serve(sockets=[listener])


def _terminate_at_end_of_input(loop: asyncio.AbstractEventLoop) -> None:
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(descriptor, read)


if __name__ == "__main__":
    sys.exit(main())
