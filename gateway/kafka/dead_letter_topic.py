"""Reads a dead-letter topic: its letters, and what was done with them."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum

from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.consuming import Start, assigned, start_offsets
from headgate.gateway.records.record import Record
from headgate.kafka_client.admin.offsets import LATEST, Place, list_offsets, places_of
from headgate.kafka_client.admin.topics import find_topic
from headgate.kafka_client.errors import RetriableError
from headgate.kafka_client.options import ConnectionOptions
from headgate.serdes import DeadLetter, read_dead_letter
from headgate.serdes import Record as LetterRecord
from headgate.serdes.redrive_mark import MarkState, read_mark

# A longer silence before the end of the topic means that brokers are unavailable.
silence_seconds_max = 30.0


class LetterState(StrEnum):
    WAITING = "waiting"
    REDRIVEN = "redriven"
    UNKNOWN = "unknown"
    """The command was interrupted while it sent the letter."""


@dataclass(frozen=True, slots=True)
class StoredLetter:
    record: LetterRecord
    """The record in the dead-letter topic."""
    letter: DeadLetter
    state: LetterState

    @property
    def position(self) -> str:
        return f"{self.record.partition}:{self.record.offset}"

    @property
    def reason(self) -> str:
        return "-" if self.letter.reason is None else self.letter.reason.name

    @property
    def failed_at_ms(self) -> int | None:
        return self.letter.failed_at_ms if self.letter.failed_at_ms is not None else self.record.timestamp_ms


@dataclass(frozen=True, slots=True)
class LetterFilter:
    reasons: frozenset[str] = frozenset()
    schema_id: int | None = None
    application: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    state: LetterState | None = None

    def accepts(self, stored: StoredLetter) -> bool:
        at = stored.failed_at_ms
        return (
            (not self.reasons or stored.reason in self.reasons)
            and (self.schema_id is None or stored.letter.schema_id == self.schema_id)
            and (self.application is None or stored.letter.application == self.application)
            and (self.since_ms is None or (at is not None and at >= self.since_ms))
            and (self.until_ms is None or (at is not None and at < self.until_ms))
            and (self.state is None or stored.state is self.state)
        )


class DeadLetterTopic:
    """The letters that are in the topic when `read` starts."""

    def __init__(self, connection: ConnectionOptions, topic: str) -> None:
        self.connection = connection
        self.topic = topic

    async def read(self, accepts: Callable[[StoredLetter], bool]) -> AsyncIterator[StoredLetter]:
        """Yields letters in order per partition. Raises KafkaClientError.

        Reads the topic twice: a mark can be in any partition after the letter.
        """
        offsets, ends = await self._bounds()
        states: dict[tuple[int, int], LetterState] = {}
        async for record in self._records(offsets, ends):
            mark = read_mark(record.headers)
            if mark is not None:
                known = states.get((mark.partition, mark.offset))
                done = mark.state is MarkState.DONE or known is LetterState.REDRIVEN
                states[mark.partition, mark.offset] = LetterState.REDRIVEN if done else LetterState.UNKNOWN
        async for record in self._records(offsets, ends):
            if record.unreadable is not None or read_mark(record.headers) is not None:
                continue
            stored = StoredLetter(
                copy := _letter_record(record),
                read_dead_letter(copy),
                states.get((record.partition, record.offset), LetterState.WAITING),
            )
            if accepts(stored):
                yield stored

    async def find(self, partition: int, offset: int) -> StoredLetter | None:
        async for stored in self.read(lambda each: (each.record.partition, each.record.offset) == (partition, offset)):
            return stored
        return None

    async def _bounds(self) -> tuple[dict[Place, int], dict[Place, int]]:
        async with connect(self.connection) as cluster:
            places = places_of(await find_topic(cluster, self.topic))
            ends = await list_offsets(cluster, dict.fromkeys(places, LATEST))
            offsets = await start_offsets(cluster, places, Start(beginning=True))
        return {place: offset for place, offset in offsets.items() if offset < ends[place]}, ends

    async def _records(self, offsets: dict[Place, int], ends: dict[Place, int]) -> AsyncIterator[Record]:
        if not offsets:
            return
        async with assigned(self.connection, offsets, committed=False) as reader:
            quiet_since = time.monotonic()
            while True:
                records = await reader.poll(None)
                for record in records:
                    if record.offset < ends[Place(record.topic, record.partition)]:
                        yield record
                if await reader.reached(ends):
                    return
                quiet_since = time.monotonic() if records else quiet_since
                if time.monotonic() - quiet_since > silence_seconds_max:
                    raise RetriableError(f"Topic {self.topic} returned no records for {silence_seconds_max:.0f} s.")


def _letter_record(record: Record) -> LetterRecord:
    return LetterRecord(
        record.topic,
        record.key,
        record.value,
        record.headers,
        record.partition,
        record.offset,
        record.timestamp_ms,
    )
