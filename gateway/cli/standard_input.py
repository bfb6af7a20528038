"""Reads standard input or files in a thread, so that the event loop is not blocked.

The thread is a daemon, so that Ctrl-C does not wait for a blocking read.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path

from headgate.gateway.cli.errors import CommandError

chunk_bytes = 256 * 1024

# Chunks that are read ahead.
chunks_ahead_max = 4


async def chunks(paths: Sequence[Path]) -> AsyncIterator[bytes]:
    """Chunks of each file, or of standard input without files. An empty chunk marks the end of a file.

    Raises CommandError.
    """
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
                return  # the event loop is closed or closing

    threading.Thread(target=read, daemon=True).start()
    try:
        while chunk := await queue.get():
            if isinstance(chunk, OSError):
                raise CommandError(f"cannot read {source}", why=chunk.strerror or "")
            yield chunk
    finally:
        if descriptor != 0:
            os.close(descriptor)
