"""Re-drives dead letters: sends them to their source topics, at most once each.

Per batch of letters: write the marks STARTED, look for earlier claims of other runs, send the letters, write the marks
DONE. Every step waits for the acknowledgements. An interrupted run is resumed by running it again.

The log of the partition is the lock: the first STARTED of a letter wins. No transactions are necessary, which the
embedded broker does not have.
"""

import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import uuid4

from headgate.kafka_client.errors import TopicNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.producer import Producer
from headgate.kafka_client.producer.records import OutgoingRecord, Ticket
from headgate.proxy.dead_letters.letter import LetterFilter, LetterState, StoredLetter
from headgate.proxy.dead_letters.topic import DeadLetterTopic
from headgate.serdes import Record, RedriveRefused, redrive
from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers, read_mark

BATCH_LETTERS: Final = 500
BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""A batch ends with the letter that exceeds this size, so that its letters fit into memory."""
SOURCE_TOPICS_MAX: Final = 100
"""Source topics of one run."""
REFUSALS_MAX: Final = 1000
"""Refused letters in a report. All are counted."""
RECORD_BYTES_MAX: Final = 128 * 1024 * 1024
"""Large, so that the broker rejects oversized records. Its error contains the limit."""

Repair = Callable[[StoredLetter], Awaitable[bytes | None]]
"""Returns the new value of a letter, or None to keep the value. Raises RedriveRefused."""
Ready = tuple[StoredLetter, Record]


@dataclass(slots=True)
class Report:
    """The result of a run."""

    sent: int = 0
    refused: int = 0
    claimed: int = 0
    """Letters that another run has claimed at the same time."""
    states: Counter[str] = field(default_factory=Counter)
    """All letters that the filter accepts, by their state before this run."""
    sources: Counter[str] = field(default_factory=Counter)
    """Letters that are sent (or would be sent) by source topic."""
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """Position and cause."""
    next_letter: str | None = None
    """The position of the first letter after a limit. None if no letters are left."""

    def document(self) -> dict[str, Any]:
        return {
            "sent": self.sent,
            "refused": self.refused,
            "claimed": self.claimed,
            "states": dict(self.states),
            "sources": dict(self.sources),
            "next_letter": self.next_letter,
        }

    def refuse(self, stored: StoredLetter, cause: str) -> None:
        self.refused += 1
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append((stored.position, cause))


class LetterSender:
    """Sends letters to their source topics. Async context manager."""

    def __init__(
        self,
        connection: ConnectionOptions,
        by: str,
        repair: Repair | None = None,
        is_writable: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._by = by
        self._repair = repair
        self._is_writable = is_writable
        self._topics: dict[str, tuple[int, ...]] = {}
        options = ProducerOptions(
            record_bytes_max=RECORD_BYTES_MAX,
            pending_bytes_max=2 * RECORD_BYTES_MAX,
            delivery_timeout_ms=30_000,
            auto_create_topics=False,
        )
        self._producer = Producer(connection, options)

    async def prepare(self, stored: StoredLetter, now_ms: int) -> Record:
        """The record for the source topic. Raises RedriveRefused, KafkaClientError."""
        value = None if self._repair is None else await self._repair(stored)
        record = redrive(stored.record, by=self._by, now_ms=now_ms, value=value)
        if not self._is_writable(record.topic):
            raise RedriveRefused(f"the source topic {record.topic} is internal")
        if record.topic not in self._topics and len(self._topics) >= SOURCE_TOPICS_MAX:
            raise RedriveRefused(f"the letters have more than {SOURCE_TOPICS_MAX} source topics; use filters")
        try:
            await self._partitions(record.topic)
        except TopicNotFound as error:
            raise RedriveRefused(f"the source topic {record.topic} does not exist") from error
        return record

    async def send(self, records: Sequence[Record]) -> list[int]:
        """Returns the offsets, after all acknowledgements. Raises KafkaClientError."""
        now_ms = time.time_ns() // 1_000_000
        tickets: list[Ticket] = []
        for record in records:
            partitions = await self._partitions(record.topic)
            # A topic that was created again may have fewer partitions.
            partition = record.partition if record.partition in partitions else None
            outgoing = OutgoingRecord(record.key, record.value, partition, record.timestamp_ms, record.headers)
            tickets.append(self._producer.place_one(record.topic, outgoing, partitions, now_ms))
        return [(await ticket.delivered()).offset for ticket in tickets]

    async def _partitions(self, topic: str) -> tuple[int, ...]:
        if topic not in self._topics:
            self._topics[topic] = await self._producer.partitions(topic)
        return self._topics[topic]

    async def __aenter__(self) -> "LetterSender":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._producer.close()


class TopicClaims:
    """The claims of one run in a dead-letter topic."""

    def __init__(self, letters: DeadLetterTopic, sender: LetterSender, by: str) -> None:
        self._letters = letters
        self._sender = sender
        self._by = by
        self._run = uuid4().hex
        self._known: dict[int, int] = {}
        """All marks of a partition before this offset are known."""
        self._lost: set[tuple[int, int]] = set()
        """Letters that other runs have claimed."""

    async def claim(self, letters: Sequence[StoredLetter]) -> list[StoredLetter]:
        """Returns the letters that this run has claimed first. Raises KafkaClientError."""
        letters = [stored for stored in letters if stored.place not in self._lost]
        marks = await self._mark(letters, MarkState.STARTED)
        for partition, offsets in _by_partition(marks).items():
            await self._read_marks(partition, offsets, marks)
        return [stored for stored in letters if stored.place not in self._lost]

    async def complete(self, letters: Sequence[StoredLetter]) -> None:
        """Raises KafkaClientError."""
        marks = await self._mark(letters, MarkState.DONE)
        for partition, offsets in _by_partition(marks).items():
            self._advance(partition, offsets)

    async def _mark(self, letters: Sequence[StoredLetter], state: MarkState) -> dict[tuple[int, int], int]:
        """Returns the offsets of the marks."""
        now_ms = time.time_ns() // 1_000_000
        places = [stored.place for stored in letters]
        marks = [Mark(partition, offset, state, self._by, now_ms, self._run) for partition, offset in places]
        records = [Record(self._letters.topic, None, None, mark_headers(mark), mark.partition) for mark in marks]
        return dict(zip(places, await self._sender.send(records), strict=True))

    def _advance(self, partition: int, offsets: Sequence[int]) -> bool:
        """Returns whether only marks of this run follow the known offset."""
        known = self._known.get(partition, self._letters.ends[partition])
        if list(offsets) != list(range(known, known + len(offsets))):
            return False
        self._known[partition] = known + len(offsets)
        return True

    async def _read_marks(self, partition: int, offsets: Sequence[int], own: Mapping[tuple[int, int], int]) -> None:
        """Find claims of other runs that are earlier than those of this run."""
        if self._advance(partition, offsets):
            return
        start = self._known.get(partition, self._letters.ends[partition])
        async for record in self._letters.records_of(partition, start, offsets[-1] + 1):
            mark = read_mark(record.headers)
            if mark is None or mark.run == self._run or mark.state is not MarkState.STARTED:
                continue
            place = (mark.partition, mark.offset)
            if place not in own or record.offset < own[place]:
                self._lost.add(place)
        self._known[partition] = offsets[-1] + 1


class LetterSource(Protocol):
    def read(
        self, accepts: Callable[[StoredLetter], bool], start: tuple[int, int] = (0, 0)
    ) -> AsyncIterator[StoredLetter]: ...


class Claims(Protocol):
    async def claim(self, letters: Sequence[StoredLetter]) -> list[StoredLetter]:
        """Returns the letters that this run has claimed first."""
        ...

    async def complete(self, letters: Sequence[StoredLetter]) -> None: ...


async def redrive_letters(
    letters: LetterSource,
    claims: Claims,
    wanted: LetterFilter,
    sender: LetterSender,
    *,
    execute: bool,
    letters_max: int | None = None,
    seconds_max: float = math.inf,
    start: tuple[int, int] = (0, 0),
    on_progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Re-drive the waiting letters that the filter accepts. Without `execute`, only check them.

    Stops after `letters_max` letters or `seconds_max`; `next_letter` is then the start of the next call.

    Raises KafkaClientError: the letters of the last batch may then be in their topics. TooManyRecords.
    """
    report = Report()
    batch: list[Ready] = []
    size = 0
    deadline = time.monotonic() + seconds_max
    async for stored in letters.read(wanted.accepts, start):
        is_late = report.states and time.monotonic() >= deadline
        if is_late or (letters_max is not None and report.states.total() >= letters_max):
            report.next_letter = stored.position
            break
        report.states[str(stored.state)] += 1
        if stored.state is not LetterState.WAITING:
            continue
        try:
            record = await sender.prepare(stored, time.time_ns() // 1_000_000)
        except RedriveRefused as error:
            report.refuse(stored, str(error))
            continue
        if not execute:
            report.sources[record.topic] += 1
            continue
        batch.append((stored, record))
        size += len(record.key or b"") + len(record.value or b"")
        if len(batch) == BATCH_LETTERS or size >= BATCH_BYTES_MAX:
            await _send(batch, claims, sender, report)
            batch, size = [], 0
            on_progress(report)
    if batch:
        await _send(batch, claims, sender, report)
    return report


async def _send(batch: Sequence[Ready], claims: Claims, sender: LetterSender, report: Report) -> None:
    claimed = await claims.claim([stored for stored, _ in batch])
    places = {stored.place for stored in claimed}
    records = [record for stored, record in batch if stored.place in places]
    await sender.send(records)
    await claims.complete(claimed)
    report.claimed += len(batch) - len(claimed)
    report.sent += len(records)
    report.sources.update(record.topic for record in records)


def _by_partition(marks: Mapping[tuple[int, int], int]) -> dict[int, list[int]]:
    """The offsets of the marks of each partition, in order."""
    found: dict[int, list[int]] = {}
    for (partition, _), offset in marks.items():
        found.setdefault(partition, []).append(offset)
    return {partition: sorted(offsets) for partition, offsets in found.items()}
