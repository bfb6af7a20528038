"""Fetches the record batches of one offset range. The next fetch is in flight while the caller processes the last one.

At most two fetch responses are in memory, each of about `fetch_bytes`. A larger batch is fetched alone. Lost or damaged
records fail the range, unless the user accepts data loss.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.serdes.columnar import AbortedTransaction
from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.errors import BrokerRefused, DataLost, TopicMissing, UnreadableBatch
from headgate.spark_udfs.source.loop import LoopThread
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
"""How long a fetch may return no records although the log contains some. Same as in Spark's Kafka source."""

COMPRESSED_BYTES_MAX = 512 * 1024
"""Size of the compressed batches to decompress together, usually some megabytes of records. One batch may be larger."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Complete batches with records from `first_offset` on. The last batch may extend beyond the end of the range.

    A later fetch overwrites the bytes. Do not use them after requesting the next piece.
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
    """Iterate once. Call `close` to stop early."""

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
            # Swap the blocks: the other block contains the bytes that the caller processes.
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
        """Returns the next position after an OFFSET_OUT_OF_RANGE error at `position`. Raises `DataLost`."""
        at, end = self._wanted.at, self._wanted.end
        first, last = self._thread.run(_edges(self._cluster, at, self._options.isolation))
        following = min(first, end) if first > position else end
        if first <= position < last:
            return position  # The position exists again, for example after a leader change.
        lost(
            f"Offsets {position} to {following - 1} of {_name(at)} do not exist: the log starts at {first} and ends at "
            f"{last}. Retention removed the records, or the topic was deleted and created again.",
            is_fatal=self._options.is_loss_fatal,
        )
        return following

    def _without_progress(self, fetched: Fetched, position: int, progressed: float) -> int:
        """Returns the next position after a response without a complete batch."""
        at, end = self._wanted.at, self._wanted.end
        if len(fetched.batches) >= HEADER_BYTES:
            raise UnreadableBatch(
                f"The batch at offset {position} of {_name(at)} has an old message format or a corrupt header. The "
                "position of the next batch is unknown. Start after this batch with startingOffsets."
            )
        readable = fetched.high_watermark
        if self._options.isolation is Isolation.READ_COMMITTED:
            readable = min(readable, fetched.last_stable_offset)
        if readable <= position:
            lost(
                f"Offsets {position} to {end - 1} of {_name(at)} existed when the query was planned. Now the log ends "
                f"at {fetched.high_watermark}: the topic was created again, or a broker lost acknowledged records.",
                is_fatal=self._options.is_loss_fatal,
            )
            return end
        if time.monotonic() - progressed > STALLED_SECONDS_MAX:
            raise BrokerRefused(
                f"The broker returned no records of {_name(at)} from offset {position} on within "
                f"{STALLED_SECONDS_MAX:.0f} s, although the log ends at {fetched.high_watermark}."
            )
        return position


def whole_batches(data: bytes | memoryview, end: int) -> tuple[int, int]:
    """Returns the size of the complete batches that begin before `end`, and the offset after them (-1 if none)."""
    position, after = 0, -1
    while len(data) - position >= HEADER_BYTES:
        base_offset, length, last_offset_delta = BOUNDS.unpack_from(data, position)
        size = LOG_OVERHEAD_BYTES + length
        if size < HEADER_BYTES or size > len(data) - position:
            break
        if base_offset >= end:
            # Compaction removed the records before this batch.
            return position, max(after, end)
        after = base_offset + max(last_offset_delta, 0) + 1
        position += size
    return position, after


def runs(batches: bytes | memoryview) -> Iterator[memoryview]:
    """Yields groups of consecutive batches to decompress together: all uncompressed ones, or fewer compressed ones."""
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
    """Raises `DataLost`, or logs a warning if the user accepts data loss."""
    if is_fatal:
        raise DataLost(problem)
    log.warning("%s Reading continues because failOnDataLoss is false.", problem)


async def _edges(cluster: Cluster, at: TopicPartition, isolation: Isolation) -> tuple[int, int]:
    first = await cluster.edges([at], EARLIEST, isolation)
    last = await cluster.edges([at], LATEST, isolation)
    return first[at], last[at]


def _name(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"
