"""Stream of a consumer group with explicit acknowledgements: at-least-once delivery.

Rows have increasing tokens. The acknowledgement of a token commits all rows up to it. If the stream ends or loses the
partition, the next member receives the unacknowledged rows again. The stream pauses at `unacknowledged_max`
unacknowledged rows.
"""

import asyncio
import contextlib
import itertools
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

from headgate.kafka_client.errors import BrokerUnavailable, RetriableError
from headgate.proxy.consumers.membership import FETCH_BYTES_MAX, GroupMember, MemberSettings, Record
from headgate.proxy.consumers.ownership import Ownership
from headgate.proxy.errors import BadRequest, ConsumerInstanceNotFound, ProxyError, TooManyRequests
from headgate.proxy.reading.batches import in_lists
from headgate.proxy.reading.poison import Disposed, dispose
from headgate.proxy.reading.rows import V3_ROWS, Row, Rows, make_rows
from headgate.proxy.reading.stream import Readers, ReadSpec
from headgate.proxy.settings import ProxySettings

UNACKNOWLEDGED: Final = 1_000
UNACKNOWLEDGED_MAX: Final = 100_000
ROWS_MAX: Final = 500
"""Maximum number of rows in one batch."""
ROWS_RATIO: Final = 3
"""Memory of unsent rows as a multiple of their size: records, rows and their text."""
PAUSE_SECONDS: Final = 0.5
"""How often a waiting stream checks whether the proxy is stopping."""


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """v3 rows with topic and token. A batch without rows and without a note is a heartbeat."""

    rows: list[bytes]
    tokens: list[int]
    note: dict[str, object] | None = None


class GroupStream:
    def __init__(
        self,
        identity: str,
        group: str,
        topics: list[str],
        member: GroupMember,
        readers: Readers,
        spec: ReadSpec,
        unacknowledged_max: int,
    ) -> None:
        self.identity = identity
        self.group = group
        self.topics = topics
        self.reason = "complete"
        self.error: ProxyError | None = None
        self._member = member
        self._readers = readers
        self._spec = spec
        self._most = unacknowledged_max
        self._sent = 0
        self._acknowledged = 0
        self._pending: deque[tuple[int, TopicPartition, int]] = deque()
        """(token, partition, next offset), in the order of the tokens."""
        self._generation = member.generation
        self._room = asyncio.Event()
        self._committing = asyncio.Lock()
        self._rows_left = spec.limit
        self.share = readers.memory.share()

    @property
    def unacknowledged(self) -> int:
        return self._sent - self._acknowledged

    async def batches(self) -> AsyncIterator[GroupBatch]:
        """Yields batches until the proxy stops, the stream reaches its limit, or a non-retriable error occurs.

        Yields heartbeats even while the coordinator is unavailable.
        """
        batches = self._batches()
        waiting: asyncio.Task[GroupBatch | None] | None = None
        try:
            while True:
                waiting = asyncio.ensure_future(anext(batches, None))
                while not (await asyncio.wait({waiting}, timeout=self._spec.heartbeat_seconds))[0]:
                    yield GroupBatch([], [])
                batch, waiting = waiting.result(), None
                if batch is None:
                    return
                yield batch
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.wait({waiting})
            await batches.aclose()

    async def _batches(self) -> AsyncGenerator[GroupBatch, None]:
        commit_at = time.monotonic() + self._spec.heartbeat_seconds
        assigned: list[TopicPartition] = []
        try:
            await self._member.subscribe(self.topics)
            while not self._readers.stopping.is_set():
                if time.monotonic() >= commit_at:
                    # Retry failed commits of acknowledged rows. The coordinator may be available again.
                    with contextlib.suppress(BrokerUnavailable, RetriableError):
                        await self._commit()
                    commit_at = time.monotonic() + self._spec.heartbeat_seconds
                self.share.resize(0)  # The client has read all previous rows.
                batch = await self._next()
                if batch is not None:
                    self.share.resize(FETCH_BYTES_MAX + ROWS_RATIO * sum(map(len, batch.rows)))
                if (now := self._member.assignment()) != assigned:
                    assigned = now
                    yield GroupBatch([], [], {"assignment": [[at.topic, at.partition] for at in assigned]})
                if batch is not None:
                    yield batch
                if self.error is not None:
                    return
                if self._rows_left == 0:
                    self.reason = "limit"
                    return
            self.reason = "shutdown"
        except ProxyError as error:
            self.reason, self.error = "error", error
        finally:
            self.share.resize(0)

    async def acknowledge(self, token: int) -> int:
        """Acknowledges all rows up to `token`. Returns the number of newly acknowledged rows. Raises BadRequest."""
        if token > self._sent:
            raise BadRequest(f"The token {token} does not exist. The last token is {self._sent}.")
        newly = max(token - self._acknowledged, 0)
        self._acknowledged = max(self._acknowledged, token)
        self._room.set()
        await self._commit()
        return newly

    async def close(self) -> None:
        await self._member.close()

    async def _next(self) -> GroupBatch | None:
        room = self._most - self.unacknowledged
        if room <= 0:
            self._room.clear()
            try:
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._room.wait()
            except TimeoutError:
                pass
            return None
        waiting = self._member.waiting()
        if not waiting and not await self._member.fetch(PAUSE_SECONDS):
            return None
        self._drop_revoked()
        generation = self._member.generation
        most = min(room, ROWS_MAX, self._rows_left or ROWS_MAX)
        await self.share.reserve()
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        disposed = await self._dispose(taken)
        if self._member.generation != generation:
            return None  # A rebalance has revoked the partition.
        return self._number(taken, disposed)

    async def _dispose(self, taken: list[Record]) -> Disposed:
        rows: list[Row] = []
        for (topic, partition), run in itertools.groupby(taken, _where):
            made = await make_rows(self._readers.payloads, self._spec.formats, V3_ROWS, topic, partition, in_lists(run))
            rows += made.rows
        # The index in `taken` replaces the offset, which is not unique across partitions.
        return await dispose(self._readers.sender, self._spec.poison, Rows([rows], list(range(len(rows)))), _where)

    def _number(self, taken: list[Record], disposed: Disposed) -> GroupBatch | None:
        texts: list[bytes] = []
        tokens: list[int] = []
        for index, row in zip(disposed.offsets, disposed.rows, strict=True):
            record = taken[index]
            if self._spec.predicate is None or self._spec.predicate(orjson.loads(row)):
                self._sent += 1
                head = b'{"topic_name":%b,"ack":"%d",' % (orjson.dumps(record.topic), self._sent)
                texts.append(head + row[1:])
                tokens.append(self._sent)
            self._pending.append((self._sent, TopicPartition(record.topic, record.partition), record.offset + 1))
        if disposed.failure is not None:
            self.reason, self.error = "error", disposed.failure
        elif len(disposed.rows) < len(taken):
            # Skipped and dead-lettered records are committed with the last row.
            after = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in taken}
            self._pending.extend((self._sent, at, following) for at, following in after.items())
        if self._rows_left is not None:
            self._rows_left -= len(texts)
        return GroupBatch(texts, tokens) if texts else None

    async def _commit(self) -> None:
        async with self._committing:
            self._drop_revoked()
            upto = self._acknowledged
            due = itertools.takewhile(lambda entry: entry[0] <= upto, self._pending)
            offsets = {at: OffsetAndMetadata(following, "") for _, at, following in due}
            if offsets:
                await self._member.commit(offsets)
            # Remove entries after the commit, so that the next acknowledgement retries a failed one.
            while self._pending and self._pending[0][0] <= upto:
                self._pending.popleft()

    def _drop_revoked(self) -> None:
        if self._generation != self._member.generation:
            self._generation = self._member.generation
            self._pending.clear()
            self._acknowledged = self._sent


class GroupStreams:
    """Group streams of one worker by id. Acknowledgements are separate requests that look up their stream here."""

    def __init__(self, settings: ProxySettings, ownership: Ownership, readers: Readers) -> None:
        self._settings = settings
        self._ownership = ownership
        self._readers = readers
        self._streams: dict[tuple[str, str], GroupStream] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open(
        self, group: str, topics: list[str], member: MemberSettings, spec: ReadSpec, unacknowledged_max: int
    ) -> GroupStream:
        """Raises TooManyRequests."""
        if len(self._streams) >= self._settings.consumer_instances_max:
            message = f"This worker has {len(self._streams)} group streams, which is the limit."
            raise TooManyRequests(message, retry_after_seconds=10)
        identity = uuid.uuid4().hex
        while self._ownership.elsewhere(group, identity) is not None:
            identity = uuid.uuid4().hex
        consumer = GroupMember(self._settings, self._readers.cluster, member)
        stream = GroupStream(identity, group, topics, consumer, self._readers, spec, unacknowledged_max)
        self._streams[group, identity] = stream
        return stream

    def find(self, group: str, identity: str) -> GroupStream:
        """Raises ConsumerInstanceNotFound."""
        found = self._streams.get((group, identity))
        if found is None:
            raise ConsumerInstanceNotFound(
                "The stream has ended. Unacknowledged rows are delivered to the next member of the group."
            )
        return found

    def end(self, stream: GroupStream) -> None:
        """Closes the stream in a separate task, because the caller may have been cancelled."""
        if self._streams.pop((stream.group, stream.identity), None) is not None:
            task = asyncio.get_running_loop().create_task(stream.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for stream in list(self._streams.values()):
            self.end(stream)
        if self._closing:
            await asyncio.wait(self._closing)


def _where(record: Any) -> tuple[str, int]:
    return record.topic, record.partition
