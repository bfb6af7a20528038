"""Stateless read of a topic in chunks, up to the current end or continuously.

The client determines the pace (backpressure). At most one chunk is prefetched. A client that stops reading therefore
uses limited memory and causes no fetches.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import orjson
from aiokafka import TopicPartition

from headgate.kafka_client.errors import BrokerUnavailable, LeaderNotFound, RetriableError
from headgate.kafka_client.fetch import Isolation
from headgate.proxy.errors import ProxyError, ShuttingDown, TooManyRequests
from headgate.proxy.producers.sender import Sender
from headgate.proxy.reading.batches import Chunk, read_chunk, record_lists
from headgate.proxy.reading.cluster import Cluster
from headgate.proxy.reading.filters import Predicate
from headgate.proxy.reading.formats import Formats
from headgate.proxy.reading.memory import StreamMemory
from headgate.proxy.reading.payloads import Payloads
from headgate.proxy.reading.plan import Plan
from headgate.proxy.reading.poison import PoisonPolicy, dispose
from headgate.proxy.reading.rows import V2_ROWS, V3_ROWS, Row, Rows, make_rows
from headgate.proxy.reading.tailing import Tails
from headgate.wire.expansion import EXPANDED_BYTES_MAX, EXPANDED_BYTES_MIN

FETCH_BYTES_MIN: Final = 128 * 1024
FETCH_BYTES_MAX: Final = 1024 * 1024
"""Chunks grow up to this size while the client keeps up. Large chunks are cheaper to render but use more memory."""
TROUBLE_SECONDS_MAX: Final = 30.0
"""How long a stream retries without a broker. A broker restart must not end the stream."""
MOVED_SECONDS_MAX: Final = 10.0
"""How long a read without `follow` waits for a leader."""
RETRY_SECONDS: Final = 0.3
HELD_RATIO: Final = 4
"""Memory of a chunk until its rows are sent, as a multiple of its size: batches, rows and prefetched chunk."""
HELD_BYTES_MIN: Final = 16 * 1024
EXPANDED_BYTES_PER_ROW: Final = 16 * 1024
"""Bytes to decompress per row of a limited read. If they are not enough, the read continues with the next chunk."""
AHEAD_ROWS_MIN: Final = 10_000
"""Reads with a smaller row limit do not prefetch."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    formats: Formats
    follow: bool = False
    limit: int | None = None
    bytes_max: int | None = None
    """Size of all rows. The first row is always returned."""
    wait_seconds: float = 0.0
    """How long to wait for the first record."""
    scan_seconds: float | None = None
    """How long to search for rows that match the filter."""
    predicate: Predicate | None = None
    poison: PoisonPolicy = field(default_factory=PoisonPolicy)
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    heartbeat_seconds: float = 15.0
    v2: bool = False
    page: bool = False
    """One bounded response. `share` holds its rows until the caller releases it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows without poison, and their offsets. A batch without rows is a heartbeat."""

    partition: int
    content: Rows

    @property
    def rows(self) -> list[bytes]:
        return cast(list[bytes], self.content.rows)

    @property
    def offsets(self) -> list[int]:
        return self.content.offsets

    def texts(self) -> Sequence[bytes]:
        """Returns the rows in a few large texts. A line feed ends each row. A heartbeat is an empty line."""
        texts = self.content.texts
        return texts if texts else [b"\n".join(self.rows) + b"\n"]


class Readers:
    """Shared state of all streams of a worker."""

    def __init__(
        self, cluster: Cluster, payloads: Payloads, sender: Sender, streams_max: int, streams_bytes_max: int
    ) -> None:
        self.memory = StreamMemory(streams_bytes_max)
        self.cluster = cluster
        self.payloads = payloads
        self.sender = sender
        self.tails = {isolation: Tails(cluster, isolation) for isolation in Isolation}
        self.stopping = asyncio.Event()
        self._streams_max = streams_max
        self.streams = 0

    def admit(self) -> None:
        """Raises TooManyRequests, ShuttingDown."""
        if self.stopping.is_set():
            raise ShuttingDown("This proxy is shutting down; come back to another one.")
        if self.streams >= self._streams_max:
            raise TooManyRequests(f"This worker has {self._streams_max} streams open.", retry_after_seconds=10)

    async def counted(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self.streams += 1
        try:
            async for piece in body:
                yield piece
        finally:
            self.streams -= 1

    def stop(self) -> None:
        self.stopping.set()
        for tails in self.tails.values():
            tails.stop()

    async def close(self) -> None:
        self.stop()
        for tails in self.tails.values():
            await tails.close()


class RecordStream:
    def __init__(self, readers: Readers, topic: str, plan: Plan, spec: ReadSpec) -> None:
        self._readers = readers
        self._topic = topic
        self._spec = spec
        self.positions = dict(plan.positions)
        self.ends = dict(plan.ends)
        self.reason = "complete"
        """Why the stream has ended: complete, limit, timeout, shutdown or error."""
        self.error: ProxyError | None = None
        self.share = readers.memory.share()
        self._page_bytes = 0
        """Memory of the returned rows of a page, and of the response body that joins them."""
        self._rows_left = spec.limit
        self._bytes_left = spec.bytes_max
        self._any_sent = False
        self._is_at_tail = False
        self._fetch_bytes = FETCH_BYTES_MIN
        self._ahead: asyncio.Task[list[tuple[TopicPartition, Chunk]]] | None = None
        started = time.monotonic()
        self._wait_until = started + spec.wait_seconds
        self._scan_until = None if spec.scan_seconds is None else started + spec.scan_seconds
        self._trouble_since: float | None = None

    @property
    def at_end(self) -> bool:
        return all(offset >= self.ends[partition] for partition, offset in self.positions.items())

    async def batches(self) -> AsyncIterator[Batch]:
        """Yields batches of rows. After the end, `reason` and `error` contain the cause."""
        try:
            while (chunks := await self._next()) is not None:
                if not chunks:
                    self._hold(0)
                    yield Batch(-1, Rows([], []))
                    continue
                await self.share.reserve()
                self._fetch_ahead(chunks)
                self._hold(HELD_RATIO * sum(chunk.size for _, chunk in chunks) + HELD_BYTES_MIN)
                for at, chunk in chunks:
                    batch = await self._render(at.partition, chunk)
                    if batch.offsets:
                        self._any_sent = True
                        if self._spec.page:
                            self._page_bytes += 2 * sum(map(len, batch.rows))
                        yield batch
                    if self.error is not None or self._exhausted():
                        return
        except ProxyError as error:
            self.reason, self.error = "error", error
        finally:
            self._hold(0)
            if self._ahead is not None:
                self._ahead.cancel()

    def _hold(self, size: int) -> None:
        self.share.resize(self._page_bytes + size)

    def _exhausted(self) -> bool:
        is_cut = self._spec.page and self._any_sent and self._readers.memory.is_full
        if self._rows_left == 0 or self._bytes_left == 0 or is_cut:
            self.reason = "limit"
            return True
        return False

    async def _next(self) -> list[tuple[TopicPartition, Chunk]] | None:
        """Returns the next chunks, an empty list for a heartbeat, or None at the end."""
        quiet_until = time.monotonic() + self._spec.heartbeat_seconds
        while True:
            if self._readers.stopping.is_set():
                self.reason = "shutdown"
                return None
            now = time.monotonic()
            if self._scan_until is not None and now >= self._scan_until and not self.at_end:
                self.reason = "timeout"
                return None
            if not self._spec.follow and self.at_end:
                if self._any_sent or now >= self._wait_until:
                    return None
                chunks = await self._wait(min(self._wait_until, quiet_until) - now)
            elif now >= quiet_until:
                return []
            else:
                chunks = await self._read_on(quiet_until)
            if chunks:
                return chunks

    async def _read_on(self, quiet_until: float) -> list[tuple[TopicPartition, Chunk]]:
        self._hold(0)  # The client has read all previous rows.
        if self._is_at_tail:
            return await self._wait(quiet_until - time.monotonic())
        await self.share.reserve()
        try:
            chunks = await (self._ahead or self._fetch())
            if chunks or self._spec.follow:
                self._trouble_since = None
        except (BrokerUnavailable, RetriableError, LeaderNotFound) as error:
            await self._outlive(error)
            return []
        finally:
            self._ahead = None
        if chunks:
            self._fetch_bytes = min(self._fetch_bytes * 2, FETCH_BYTES_MAX)
            return chunks
        self._hold(0)
        if self._spec.follow:
            self._is_at_tail = True
            return await self._wait(quiet_until - time.monotonic())
        if not self.at_end:
            await self._outlive(LeaderNotFound("The leaders of some partitions do not answer."))
        return []

    async def _wait(self, seconds: float) -> list[tuple[TopicPartition, Chunk]]:
        tails = self._readers.tails[self._spec.isolation]
        wanted = {TopicPartition(self._topic, partition): at for partition, at in self.positions.items()}
        found = await tails.wait(wanted, max(seconds, 0.0))
        if found is None:
            self._is_at_tail = False
        if not found and not self._spec.follow:
            found = await self._fetch(everything=True)
        return found or []

    async def _outlive(self, error: ProxyError) -> None:
        self._hold(0)
        now = time.monotonic()
        self._trouble_since = self._trouble_since or now
        patience = TROUBLE_SECONDS_MAX if self._spec.follow else MOVED_SECONDS_MAX
        if isinstance(error, BrokerUnavailable) and not self._spec.follow:
            raise error
        if now - self._trouble_since >= patience:
            raise error
        await asyncio.sleep(RETRY_SECONDS)

    def _fetch_ahead(self, chunks: list[tuple[TopicPartition, Chunk]]) -> None:
        """Starts to fetch the next chunks while the caller renders and sends these. Does nothing with `follow`."""
        if self._spec.follow or not chunks or (self._spec.limit or AHEAD_ROWS_MIN) < AHEAD_ROWS_MIN:
            return
        after = self.positions | {at.partition: chunk.next for at, chunk in chunks}
        if any(offset < self.ends[partition] for partition, offset in after.items()):
            self._ahead = asyncio.get_running_loop().create_task(self._fetch(after))

    async def _fetch(
        self, positions: dict[int, int] | None = None, *, everything: bool = False
    ) -> list[tuple[TopicPartition, Chunk]]:
        everything = everything or self._spec.follow
        wanted = {
            TopicPartition(self._topic, partition): at
            for partition, at in (positions or self.positions).items()
            if everything or at < self.ends[partition]
        }
        found = await self._readers.cluster.fetch(wanted, bytes_max=self._fetch_bytes, isolation=self._spec.isolation)
        bytes_max = self._expanded_bytes_max(len(found))
        chunks: list[tuple[TopicPartition, Chunk]] = []
        for at, fetched in found.items():
            if fetched.is_out_of_range:
                if wanted[at] == self.positions[at.partition]:
                    await self._move_into_range(at.partition)
            elif fetched.error is not None:
                raise fetched.error
            else:
                decompression = self._readers.cluster.decompression
                chunk = await read_chunk(decompression, fetched, wanted[at], self._spec.isolation, bytes_max)
                if chunk.next > chunk.start:
                    chunks.append((at, chunk))
                elif fetched.high_watermark <= wanted[at]:
                    self.ends[at.partition] = min(self.ends[at.partition], wanted[at])
        return chunks

    def _expanded_bytes_max(self, partitions: int) -> int:
        """Returns the bytes to decompress per partition. It divides the remaining limit among the partitions."""
        wanted = EXPANDED_BYTES_MAX
        if self._rows_left is not None:
            wanted = min(wanted, self._rows_left * EXPANDED_BYTES_PER_ROW)
        if self._bytes_left is not None:
            wanted = min(wanted, self._bytes_left)
        return max(wanted // max(partitions, 1), EXPANDED_BYTES_MIN)

    async def _move_into_range(self, partition: int) -> None:
        """Clamps the position to the log after retention or a purge deleted it, or the topic was re-created."""
        cluster, isolation = self._readers.cluster, self._spec.isolation
        first = (await cluster.offsets(self._topic, {partition: -2}, isolation))[partition] or 0
        after = (await cluster.offsets(self._topic, {partition: -1}, isolation))[partition] or 0
        self.positions[partition] = min(max(self.positions[partition], first), after)
        self.ends[partition] = min(self.ends[partition], after)

    async def _render(self, partition: int, chunk: Chunk) -> Batch:
        spec = self._spec
        made = await self._rows(partition, chunk)
        if made.texts is not None and spec.predicate is None and self._rows_left is None and self._bytes_left is None:
            self.positions[partition] = chunk.next
            return Batch(partition, made)
        disposed = await dispose(self._readers.sender, spec.poison, made, lambda _: (self._topic, partition))
        rows, offsets = disposed.rows, disposed.offsets
        self.positions[partition] = chunk.next
        if disposed.failure is not None:
            self.reason, self.error = "error", disposed.failure
            self.positions[partition] = made.offsets[disposed.consumed]
        if spec.predicate is not None:
            passing = [index for index, row in enumerate(rows) if spec.predicate(orjson.loads(row))]
            rows, offsets = [rows[index] for index in passing], [offsets[index] for index in passing]
        fitting = self._fitting(rows)
        if fitting < len(rows):
            self.error = None
            self.positions[partition] = offsets[fitting]
            rows, offsets = rows[:fitting], offsets[:fitting]
        return Batch(partition, Rows([cast(list[Row], rows)], offsets))

    async def _rows(self, partition: int, chunk: Chunk) -> Rows:
        key = (self._spec.formats, self._spec.v2)
        whole: Rows | None = chunk.rendered.get(key)
        if whole is None:
            shape = V2_ROWS if self._spec.v2 else V3_ROWS
            whole = await make_rows(
                self._readers.payloads, self._spec.formats, shape, self._topic, partition, record_lists(chunk)
            )
            chunk.rendered[key] = whole
        return whole.since(self.positions[partition])

    def _fitting(self, rows: list[bytes]) -> int:
        """Returns how many rows fit into the remaining limits, and deducts them from the limits."""
        count = len(rows) if self._rows_left is None else min(len(rows), self._rows_left)
        if self._bytes_left is not None:
            for index in range(count):
                size = len(rows[index])
                if size > self._bytes_left and (index or self._any_sent):
                    count = index
                    self._bytes_left = 0
                    break
                self._bytes_left = max(self._bytes_left - size, 0)
                if not self._bytes_left:
                    count = index + 1
                    break
        if self._rows_left is not None:
            self._rows_left -= count
        return count
