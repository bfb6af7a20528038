"""Consumers that read data outside the page cache, to measure their effect on a producer.

Each consumer is a separate process. It evicts the topic's segments with POSIX_FADV_DONTNEED before every fetch, so
that the broker reads every response from the disk.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from benchmarks import raw_load

CONSUMERS = 2
FETCH_BYTES = 1024 * 1024


@contextmanager
def cold_consumers(address: str, topic: str, folder: Path, offsets: Sequence[int]) -> Iterator[None]:
    """Fetch from the offsets in a loop until the block ends.

    `folder` contains the partition's segments. The consumers start at different offsets. Otherwise one consumer would
    read data that another consumer has just loaded into the page cache.
    """
    os.sync()
    _evict(folder)
    assert not _is_cached(folder), f"the file system of {folder} does not evict pages"
    context = get_context("spawn")
    with ExitStack() as stack:
        for number in range(CONSUMERS):
            start = number * len(offsets) // CONSUMERS
            here, there = context.Pipe()
            order = [*offsets[start:], *offsets[:start]]
            process = context.Process(target=_run, args=(address, topic, folder, order, there), daemon=True)
            process.start()
            # Callbacks run in reverse order: send "stop" first, then join the process.
            stack.callback(process.join, 30)
            stack.callback(here.send, "stop")
            assert here.recv() == "started"
        yield


def _run(address: str, topic: str, folder: Path, offsets: Sequence[int], pipe: Pipe) -> None:
    wire = raw_load.Wire(address)
    frames = [raw_load.fetch_frame(topic, offset, FETCH_BYTES) for offset in offsets]
    is_started = False
    while True:
        for frame in frames:
            _evict(folder)
            wire.send(frame)
            size = len(wire.receive())
            assert size > FETCH_BYTES // 2, f"a fetch returned {size} bytes"
            if not is_started:
                is_started = True
                pipe.send("started")
            if pipe.poll():
                return


def _evict(folder: Path) -> None:
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _is_cached(folder: Path) -> bool:
    """Return whether the start of a segment is in the page cache."""
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.preadv(descriptor, (bytearray(1),), 0, os.RWF_NOWAIT)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
        return True
    return False
