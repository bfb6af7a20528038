"""Bytes from standard input or files for a coroutine, as they come, without holding up the event loop.

The reading thread is a daemon: Ctrl-C must not wait for a read that nobody will end.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path

from headgate.gateway.cli.errors import CommandError

chunk_bytes = 256 * 1024

# Chunks read ahead while earlier ones are being sent.
chunks_ahead_max = 4


async def chunks(paths: Sequence[Path]) -> AsyncIterator[bytes]:
    """The files in turn, or standard input if there are none; an empty chunk ends each. Raises CommandError."""
    for source in paths or [Path("-")]:
        async for chunk in _chunks_of(source):
            yield chunk
        yield b""


async def _chunks_of(source: Path) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | OSError] = asyncio.Queue(chunks_ahead_max)
    try:
        descriptor = 0 if str(source) == "-" else os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandError(f"cannot read {source}", why=error.strerror or "") from error

    def read() -> None:
        item: bytes | OSError = b"-"
        while item and not isinstance(item, OSError):
            try:
                item = os.read(descriptor, chunk_bytes)
            except OSError as error:
                item = error
            try:
                asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()
            except (RuntimeError, CancelledError):
                return  # the loop is closed, or about to be: nobody listens any more

    threading.Thread(target=read, daemon=True).start()
    try:
        while chunk := await queue.get():
            if isinstance(chunk, OSError):
                raise CommandError(f"cannot read {source}", why=chunk.strerror or "")
            yield chunk
    finally:
        if descriptor != 0:
            os.close(descriptor)
