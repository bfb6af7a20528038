"""Run a broker until it is told to stop."""

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

import uvloop

from broker.server.server import Server
from broker.settings import BrokerSettings

logger = logging.getLogger("headgate.broker")


async def serve(
    data_directory: Path, settings: BrokerSettings, host: str, port: int, on_ready: Callable[[str, int], None]
) -> None:
    """Start, report the address, and stop cleanly on SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = Server(data_directory, settings, host, port)
    on_ready(*server.start())
    try:
        await stopping.wait()
    finally:
        logger.info("stopping")
        server.stop()


def run(
    data_directory: Path, settings: BrokerSettings, host: str, port: int, on_ready: Callable[[str, int], None]
) -> None:
    uvloop.run(serve(data_directory, settings, host, port, on_ready))
