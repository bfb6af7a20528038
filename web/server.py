"""Start and stop an HTTP server: listening socket, uvicorn configuration, signals, end of standard input."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import uvicorn
import uvloop

from headgate.web.application import Application
from headgate.web.settings import InvalidSetting

_EXIT_FAILURE: Final = 1
_EXIT_USAGE: Final = 2
PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class ServerOptions:
    host: str
    port: int
    """0: the operating system chooses a port."""
    grace_seconds: int
    """How long requests in flight may take after a stop signal."""
    websocket_message_bytes_max: int = 1024 * 1024
    date_header: bool = True
    stop_at_eof: bool = False
    """Stop when standard input ends."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, begin_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._begin_stop = begin_stop
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # A signal handler may interrupt any line of Python, so the event loop runs the callback.
        self._loop.call_soon_threadsafe(self._begin_stop)
        super().handle_exit(sig, frame)


def split_listen_address(text: str) -> tuple[str, int]:
    """HOST:PORT. An IPv6 address may have brackets. Raises InvalidSetting."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= PORT_MAX):
        raise InvalidSetting(f"--listen must be HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


async def serve(application: Application, options: ServerOptions) -> None:
    """Serves until SIGTERM or SIGINT, or until cancelled. Writes the address to standard error when it listens."""
    config = uvicorn.Config(
        application,
        http=application.http_protocol,
        loop="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=options.date_header,
        proxy_headers=False,
        timeout_graceful_shutdown=options.grace_seconds,
        ws_max_size=options.websocket_message_bytes_max,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_logged)
    if options.stop_at_eof:
        _terminate_at_eof(asyncio.get_running_loop())
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.create_server((options.host, options.port), family=family) as listener:
        host = f"[{options.host}]" if family is socket.AF_INET6 else options.host
        print(f"listening on http://{host}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        await _Server(config, application.begin_stop).serve(sockets=[listener])


def run(name: str, server: Coroutine[Any, Any, None]) -> int:
    """Runs `server` on an event loop and returns the exit code of the process. `name` starts error messages."""
    # uvicorn raises the signal again after it has stopped. The default action would skip the cleanup in `finally`.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server)
    except InvalidSetting as error:
        print(f"{name}: {error}", file=sys.stderr)
        return _EXIT_USAGE
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return _EXIT_FAILURE
    return 0


def _is_logged(record: logging.LogRecord) -> bool:
    """uvicorn logs this error for every WebSocket handshake with an error response, such as 403."""
    return record.msg != "ASGI callable returned without completing handshake."


def _terminate_at_eof(loop: asyncio.AbstractEventLoop) -> None:
    """Raises SIGTERM when standard input ends. A pipe ends with its parent process, even after SIGKILL."""
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(descriptor, read)
