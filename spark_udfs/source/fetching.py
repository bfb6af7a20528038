"""The records of one range, fetch by fetch: the next one is on its way while the caller works on the last.

Held at once: the bytes of the fetch being worked on, and those of the one on its way, each about `fetch_bytes` (one
batch may be larger, and then comes alone). Records that are gone or cannot be read end the range, unless data loss is
accepted.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from headgate.serdes.columnar import AbortedTransaction
from headgate.spark_udfs.source.cluster import Cluster, Fetched
from headgate.spark_udfs.source.errors import BrokerRefused, DataLost, TopicMissing, UnreadableBatch
from headgate.spark_udfs.source.loop import LoopThread
from headgate.spark_udfs.source.options import Isolation
from headgate.spark_udfs.source.positions import EARLIEST, LATEST
from headgate.spark_udfs.source.ranges import OffsetRange
from headgate.spark_udfs.source.receive_buffer import Block
from headgate.wire.record_batch import (
    ATTRIBUTES_AT,
    BOUNDS,
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD,
    LOG_OVERHEAD_BYTES,
)

STALLED_SECONDS_MAX = 120.0
"""How long records that must be there may fail to come, as Spark's own source waits."""

COMPRESSED_BYTES_MAX = 512 * 1024
"""Compressed batches to decompress together: usually some megabytes of records. A single batch may be larger."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole batches that hold records from `first_offset` on; some records may lie at the range's end or beyond.

    They lie where the fetch after the next will be received: nothing may refer to them when the next piece is taken.
    """

    batches: bytes | memoryview
    first_offset: int
    aborted: tuple[AbortedTransaction, ...]


@dataclass(frozen=True, slots=True)
class FetchOptions:
    isolation: Isolation
    bytes_max: int
    wait_ms: int
    is_loss_fatal: bool


class RangeFetcher:
    """Iterate once; `close` where that ends early."""

    def __init__(self, thread: LoopThread, cluster: Cluster, wanted: OffsetRange, options: FetchOptions) -> None:
        self._thread = thread
        self._cluster = cluster
        self._wanted = wanted
        self._options = options
        self._coming: Future[Fetched] | None = None
        self._blocks = [Block(), Block()]

    def __iter__(self) -> Iterator[Piece]:
        at, end = self._wanted.at, self._wanted.end
        position = self._wanted.start
        progressed = time.monotonic()
        self._send(position)
        while position < end:
            try:
                fetched = self._received()
            except TopicMissing as error:
                lost(f"Offsets {position} to {end - 1} are lost: {error}", is_fatal=self._options.is_loss_fatal)
                return
            if fetched.is_out_of_range:
                position = self._after_loss(position)
                self._send(position)
                continue
            size, after = whole_batches(fetched.batches, end)
            if after <= position:
                position = self._without_progress(fetched, position, progressed)
                self._send(position)
                continue
            if after < end:
                self._send(after)
            yield Piece(memoryview(fetched.batches)[:size], position, fetched.aborted)
            position = after
            progressed = time.monotonic()
        log.debug("read %s up to %s", at, end)

    def close(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def _send(self, position: int) -> None:
        if position < self._wanted.end:
            options = self._options
            # Of the two, the one that does not hold what the caller works on.
            self._blocks.reverse()
            self._coming = self._thread.start(
                self._cluster.fetch(
                    self._wanted.at,
                    position,
                    block=self._blocks[0],
                    bytes_max=options.bytes_max,
                    wait_ms=options.wait_ms,
                    isolation=options.isolation,
                )
            )

    def _received(self) -> Fetched:
        assert self._coming is not None
        coming, self._coming = self._coming, None
        return coming.result()

    def _after_loss(self, position: int) -> int:
        """Where to go on after the broker does not have a position (any more). Raises `DataLost`."""
        at, end = self._wanted.at, self._wanted.end
        first, last = self._thread.run(_edges(self._cluster, at, self._options.isolation))
        following = min(first, end) if first > position else end
        if first <= position < last:
            return position  # It was there again by the time we looked; the leader changed, say.
        lost(
            f"Offsets {position} to {following - 1} of {_name(at)} are not there to be read: the log now holds {first} "
            f"up to {last}, by retention, or because the topic was deleted and made anew.",
            is_fatal=self._options.is_loss_fatal,
        )
        return following

    def _without_progress(self, fetched: Fetched, position: int, progressed: float) -> int:
        """An answer without a whole batch, though the range is not at its end."""
        at, end = self._wanted.at, self._wanted.end
        if len(fetched.batches) >= HEADER_BYTES:
            raise UnreadableBatch(
                f"The batch at offset {position} of {_name(at)} is in an old message format, or its header is damaged; "
                "nothing says where the next one begins. Start behind it with startingOffsets."
            )
        readable = fetched.high_watermark
        if self._options.isolation is Isolation.READ_COMMITTED:
            readable = min(readable, fetched.last_stable_offset)
        if readable <= position:
            lost(
                f"Offsets {position} to {end - 1} of {_name(at)} were there when the query was planned; now the log "
                f"ends at {fetched.high_watermark}: the topic was made anew, or a broker lost what it acknowledged.",
                is_fatal=self._options.is_loss_fatal,
            )
            return end
        if time.monotonic() - progressed > STALLED_SECONDS_MAX:
            raise BrokerRefused(
                f"No records of {_name(at)} from offset {position} on in {STALLED_SECONDS_MAX:.0f} s, though the log "
                f"ends at {fetched.high_watermark}."
            )
        return position


def whole_batches(data: bytes | memoryview, end: int) -> tuple[int, int]:
    """The number of bytes in complete batches that begin before `end`, and the offset after them (-1 if none)."""
    position, after = 0, -1
    while len(data) - position >= HEADER_BYTES:
        base_offset, length, last_offset_delta = BOUNDS.unpack_from(data, position)
        size = LOG_OVERHEAD_BYTES + length
        if size < HEADER_BYTES or size > len(data) - position:
            break
        if base_offset >= end:
            # Compaction removed the records between them.
            return position, max(after, end)
        after = base_offset + max(last_offset_delta, 0) + 1
        position += size
    return position, after


def runs(batches: bytes | memoryview) -> Iterator[memoryview]:
    """Groups of consecutive complete batches to decompress at once: all of them, or fewer if they are compressed."""
    view = memoryview(batches)
    position = first = 0
    while position < len(view):
        _, length = LOG_OVERHEAD.unpack_from(view, position)
        is_compressed = bool(view[position + ATTRIBUTES_AT + 1] & CODEC_MASK)
        size = LOG_OVERHEAD_BYTES + length
        if is_compressed and position > first and position + size - first > COMPRESSED_BYTES_MAX:
            yield view[first:position]
            first = position
        position += size
    if position > first:
        yield view[first:position]


def lost(problem: str, *, is_fatal: bool) -> None:
    """Raises `DataLost`, or warns where the user accepts it."""
    if is_fatal:
        raise DataLost(problem)
    log.warning("%s failOnDataLoss is false: reading on.", problem)


async def _edges(cluster: Cluster, at: TopicPartition, isolation: Isolation) -> tuple[int, int]:
    first = await cluster.edges([at], EARLIEST, isolation)
    last = await cluster.edges([at], LATEST, isolation)
    return first[at], last[at]


def _name(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"
