"""Runs a broker until a signal stops it."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import uvloop

from headgate.broker.log.open_files import raise_descriptor_limit
from headgate.broker.server.server import Server
from headgate.broker.state.settings import BrokerSettings
from headgate.wire.allocator import set_malloc_thresholds

# malloc thresholds. A request needs buffers of about 1 MiB.
kept_free_bytes_max = 32 * 1024 * 1024
mmap_bytes_min = 8 * 1024 * 1024

logger = logging.getLogger("headgate.broker")


async def serve(
    data_directory: Path,
    settings: BrokerSettings,
    host: str,
    port: int,
    on_ready: Callable[[str, int], None],
    *,
    stop_at_eof: bool = False,
) -> None:
    """Start the server and report its address. Stops on SIGTERM, SIGINT, or end of standard input (`stop_at_eof`)."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if stop_at_eof:
        _at_end_of_input(loop, stopping.set)
    server = Server(data_directory, settings, host, port)
    on_ready(*server.start())
    try:
        await stopping.wait()
    finally:
        logger.info("stopping")
        server.stop()


def _at_end_of_input(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Call `stop` when standard input ends. A pipe also closes when its writer is killed. Input bytes are ignored."""
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop()

    loop.add_reader(descriptor, read)


def keep_freed_buffers() -> None:
    """Keep freed memory in the process for the next request. New page faults would double the CPU time per byte."""
    set_malloc_thresholds(kept_free_bytes_max=kept_free_bytes_max, mmap_bytes_min=mmap_bytes_min)


def run(
    data_directory: Path,
    settings: BrokerSettings,
    host: str,
    port: int,
    on_ready: Callable[[str, int], None],
    *,
    stop_at_eof: bool = False,
) -> None:
    keep_freed_buffers()
    raise_descriptor_limit()
    uvloop.run(serve(data_directory, settings, host, port, on_ready, stop_at_eof=stop_at_eof))
