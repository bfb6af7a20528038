"""Re-drives dead letters: sends them to their source topics, at most once each.

Per batch of letters: write the marks STARTED, send the letters, write the marks DONE. Every step waits for the
acknowledgements. An interrupted run is resumed by running it again.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.dead_letter_topic import StoredLetter
from headgate.gateway.kafka.producing import Sender
from headgate.gateway.records.record import NewRecord
from headgate.kafka_client.admin.topics import find_topic
from headgate.kafka_client.errors import TopicNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.serdes import RedriveRefused, redrive
from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers

BATCH_LETTERS: Final = 500
SOURCE_TOPICS_MAX: Final = 100
"""Source topics of one dead-letter topic. Each has a producer."""


class Redriving:
    """Async context manager."""

    def __init__(
        self, connection: ConnectionOptions, topic: str, by: str, *, on_refused: Callable[[StoredLetter, str], None]
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._by = by
        self._on_refused = on_refused
        self._stack = AsyncExitStack()
        self._senders: dict[str, Sender] = {}
        self.redriven = 0
        self.refused = 0

    async def send(self, letters: Sequence[StoredLetter]) -> None:
        """Re-drive a batch. Raises KafkaClientError: the letters of this batch may then be in their topics."""
        now_ms = time.time_ns() // 1_000_000
        ready: list[tuple[StoredLetter, str, NewRecord]] = []
        for stored in letters:
            try:
                record = redrive(stored.record, by=self._by, now_ms=now_ms)
                sender = await self._sender(record.topic)
            except RedriveRefused as error:
                self.refused += 1
                self._on_refused(stored, str(error))
                continue
            # A topic that was created again may have fewer partitions.
            partition = record.partition if record.partition in sender.partitions else None
            new = NewRecord(record.key, record.value, record.headers, partition, record.timestamp_ms)
            ready.append((stored, record.topic, new))
        await self._mark([stored for stored, _, _ in ready], MarkState.STARTED, now_ms)
        for _, topic, new in ready:
            await (await self._sender(topic)).send(new)
        for topic in {topic for _, topic, _ in ready}:
            await self._senders[topic].flush()
        await self._mark([stored for stored, _, _ in ready], MarkState.DONE, now_ms)
        self.redriven += len(ready)

    async def _mark(self, letters: Sequence[StoredLetter], state: MarkState, now_ms: int) -> None:
        sender = await self._sender(self._topic)
        for stored in letters:
            partition, offset = stored.record.partition, stored.record.offset
            assert partition is not None
            assert offset is not None
            headers = mark_headers(Mark(partition, offset, state, self._by, now_ms))
            # In the partition of the letter: retention then removes both together.
            await sender.send(NewRecord(None, None, headers, partition))
        await sender.flush()

    async def _sender(self, name: str) -> Sender:
        """Raises RedriveRefused for a missing topic, and for too many topics."""
        if name not in self._senders:
            if len(self._senders) > SOURCE_TOPICS_MAX:
                raise RedriveRefused(f"the letters have more than {SOURCE_TOPICS_MAX} source topics; use filters")
            try:
                async with connect(self._connection) as cluster:
                    topic = await find_topic(cluster, name)
            except TopicNotFound as error:
                raise RedriveRefused(f"the source topic {name} does not exist") from error
            sender = Sender(self._connection, topic, acks="all", compression="none", on_receipt=lambda _: None)
            self._senders[name] = await self._stack.enter_async_context(sender)
        return self._senders[name]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
