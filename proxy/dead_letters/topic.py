"""Reads a dead-letter topic: its letters, and what was done with them.

The marks of a letter are in its partition, after it. A read from any offset therefore finds the states of all letters
that it returns.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from headgate.kafka_client.admin.offsets import EARLIEST, LATEST, list_offsets, places_of
from headgate.kafka_client.admin.offsets import purge as delete_records
from headgate.kafka_client.admin.topics import find_topic
from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.consumer import BoundedConsumer
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.errors import RetriableError
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.request_client import RequestClient
from headgate.proxy.dead_letters.letter import LetterCounts, LetterState, StoredLetter
from headgate.serdes import Record, read_dead_letter
from headgate.serdes.redrive_mark import MarkState, read_mark

POLL_MS: Final = 250
POLL_RECORDS_MAX: Final = 500
# A longer silence before the end of the topic means that brokers are unavailable.
silence_seconds_max = 30.0


class TooManyRecords(Exception):
    """The scan has read its maximum number of records."""


@dataclass(slots=True)
class ScanBudget:
    """Records that one command or request may read. None: no limit."""

    records_left: int | None = None

    def use(self, records: int) -> None:
        """Raises TooManyRecords."""
        if self.records_left is not None:
            self.records_left -= records
            if self.records_left < 0:
                raise TooManyRecords


class DeadLetterTopic:
    """The letters that are in the topic when `read` starts. `cluster` sends requests and is not closed here."""

    def __init__(
        self, connection: ConnectionOptions, cluster: RequestClient, topic: str, budget: ScanBudget | None = None
    ) -> None:
        self.connection = connection
        self.topic = topic
        self.ends: Mapping[int, int] = {}
        """The end offset of each partition at the start of the last `read`. All marks before it are known."""
        self._cluster = cluster
        self._budget = budget or ScanBudget()

    async def read(
        self, accepts: Callable[[StoredLetter], bool], start: tuple[int, int] = (0, 0)
    ) -> AsyncIterator[StoredLetter]:
        """Accepted letters by partition and offset, from partition and offset `start`.

        Raises KafkaClientError, TooManyRecords.
        """
        begins = await self._begins(start)
        if not begins:
            return
        async with self._consumer() as consumer:
            states: dict[tuple[int, int], LetterState] = {}
            async for record in self._records(consumer, begins):
                _add_state(states, record)
            async for record in self._records(consumer, begins):
                stored = _stored(record, states)
                if stored is not None and accepts(stored):
                    yield stored

    async def find(self, partition: int, offset: int) -> StoredLetter | None:
        """Raises KafkaClientError, TooManyRecords."""
        begins = await self._begins((partition, offset))
        if begins.get(partition) != offset:
            return None
        states: dict[tuple[int, int], LetterState] = {}
        letter: Any = None
        async for record in self.records_of(partition, offset, self.ends[partition]):
            letter = record if record.offset == offset else letter
            _add_state(states, record)
        return None if letter is None else _stored(letter, states)

    async def records_of(self, partition: int, start: int, end: int) -> AsyncIterator[Any]:
        """The records from `start` to before `end`. Raises KafkaClientError, TooManyRecords."""
        async with self._consumer() as consumer:
            async for record in self._partition(consumer, partition, start, end):
                yield record

    async def counts(self) -> LetterCounts:
        """Letters by reason, schema and state. Raises KafkaClientError."""
        states: dict[tuple[int, int], LetterState] = {}
        kinds: dict[tuple[int, int], tuple[str, int | None]] = {}
        is_complete = True
        begins = await self._begins((0, 0))
        try:
            async with AsyncExitStack() as stack:
                consumer = await stack.enter_async_context(self._consumer()) if begins else None
                async for record in self._records(consumer, begins):
                    _add_state(states, record)
                    stored = _stored(record, states)
                    if stored is not None:
                        kinds[stored.place] = (stored.reason, stored.letter.schema_id)
        except TooManyRecords:
            is_complete = False
        counts = Counter((*kind, str(states.get(place, LetterState.WAITING))) for place, kind in kinds.items())
        return LetterCounts(counts, is_complete)

    async def purge(self, until_ms: int | None, *, execute: bool) -> int:
        """Delete the records before a time, or all. Returns their number. Raises KafkaClientError."""
        places = places_of(await find_topic(self._cluster, self.topic))
        begins = await list_offsets(self._cluster, dict.fromkeys(places, EARLIEST))
        before = await list_offsets(self._cluster, dict.fromkeys(places, LATEST))
        if until_ms is not None:
            found = await list_offsets(self._cluster, dict.fromkeys(places, until_ms))
            before = {place: found[place] if found[place] >= 0 else before[place] for place in places}
        if execute:
            await delete_records(self._cluster, before)
        return sum(max(before[place] - begins[place], 0) for place in places)

    async def _begins(self, start: tuple[int, int]) -> dict[int, int]:
        """The first offset of each partition with records from `start`. Sets `ends`."""
        places = places_of(await find_topic(self._cluster, self.topic))
        ends = await list_offsets(self._cluster, dict.fromkeys(places, LATEST))
        begins = await list_offsets(self._cluster, dict.fromkeys(places, EARLIEST))
        self.ends = {place.partition: offset for place, offset in ends.items()}
        found = {place.partition: begins[place] for place in places if place.partition >= start[0]}
        if start[0] in found:
            found[start[0]] = max(found[start[0]], start[1])
        return {partition: begin for partition, begin in sorted(found.items()) if begin < self.ends[partition]}

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        decompression = Decompression()
        consumer: Any = BoundedConsumer(decompression, self.connection)
        try:
            await consumer.start()
            # Let aiokafka's tasks start. Otherwise `stop` raises CancelledError.
            await asyncio.sleep(0)
            yield consumer
        except KafkaError as error:
            raise client_error(error) from error
        finally:
            await consumer.stop()
            decompression.close()

    async def _records(self, consumer: Any, begins: Mapping[int, int]) -> AsyncIterator[Any]:
        for partition, begin in begins.items():
            async for record in self._partition(consumer, partition, begin, self.ends[partition]):
                yield record

    async def _partition(self, consumer: Any, partition: int, begin: int, end: int) -> AsyncIterator[Any]:
        at = TopicPartition(self.topic, partition)
        consumer.assign([at])
        consumer.seek(at, begin)
        quiet_since = time.monotonic()
        while await consumer.position(at) < end:
            found = await consumer.getmany(at, timeout_ms=POLL_MS, max_records=POLL_RECORDS_MAX)
            records = [record for record in found.get(at, ()) if record.offset < end]
            self._budget.use(len(records))
            for record in records:
                yield record
            quiet_since = time.monotonic() if records else quiet_since
            if time.monotonic() - quiet_since > silence_seconds_max:
                raise RetriableError(f"Topic {self.topic} returned no records for {silence_seconds_max:.0f} s.")


def _add_state(states: dict[tuple[int, int], LetterState], record: Any) -> None:
    mark = read_mark(record.headers)
    if mark is not None:
        done = mark.state is MarkState.DONE or states.get((mark.partition, mark.offset)) is LetterState.REDRIVEN
        states[mark.partition, mark.offset] = LetterState.REDRIVEN if done else LetterState.UNKNOWN


def _stored(record: Any, states: Mapping[tuple[int, int], LetterState]) -> StoredLetter | None:
    """None for a mark and for an unreadable record."""
    if getattr(record, "unreadable", None) is not None or read_mark(record.headers) is not None:
        return None
    copy = Record(
        record.topic,
        record.key,
        record.value,
        tuple(record.headers),
        record.partition,
        record.offset,
        record.timestamp,
    )
    state = states.get((record.partition, record.offset), LetterState.WAITING)
    return StoredLetter(copy, read_dead_letter(copy), state)
