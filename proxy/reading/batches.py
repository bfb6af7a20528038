"""Fetched bytes to records: Kafka's record batches, version 2 and the older ones, through aiokafka's parser.

`proxy.kafka.record_batches` decompresses them first. Batches begin where they were written, so records before the
requested offset are dropped here; so are control records and, for readers of committed data, records of aborted
transactions. aiokafka requires UTF-8 in header names, brokers do not: such batches are parsed here, leniently.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aiokafka.errors import CorruptRecordException
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.memory_records import MemoryRecords

from headgate.proxy.errors import KafkaFailed
from headgate.proxy.kafka.decompression import BATCH_BYTES_MAX, Decompression
from headgate.proxy.kafka.record_batches import (
    EXPANDED_BYTES_MAX,
    HEADER,
    PREFIX,
    Part,
    Unreadable,
    expand,
    has_compressed,
    is_compressed,
    next_offset_of,
    split,
)
from headgate.proxy.reading.cluster import Fetched, Isolation
from headgate.proxy.reading.payloads import Header, KafkaRecord, UnreadableRecord
from headgate.serdes import Reason


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive batches of one partition, uncompressed and not parsed: see `records`."""

    start: int
    """The offset that was asked for. The first batch may begin before it."""
    next: int
    """Where to go on; beyond the last record where others were left out."""
    batches: list[Part]
    size: int
    """Bytes, uncompressed."""
    rendered: dict[object, Any] = field(default_factory=dict, compare=False)
    """Rows in the formats that were asked for: readers that wait together share them."""


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


async def read_chunk(
    decompression: Decompression,
    fetched: Fetched,
    offset: int,
    isolation: Isolation,
    bytes_max: int = EXPANDED_BYTES_MAX,
) -> Chunk:
    """`parse`, in a thread if there is anything to decompress."""
    work = partial(
        parse, fetched, offset, isolation, bytes_max=bytes_max, batch_bytes_max=decompression.batch_bytes_max
    )
    return await decompression.run(work) if has_compressed(fetched.batches) else work()


def parse(
    fetched: Fetched,
    offset: int,
    isolation: Isolation,
    *,
    bytes_max: int = EXPANDED_BYTES_MAX,
    batch_bytes_max: int = BATCH_BYTES_MAX,
) -> Chunk:
    """Up to `bytes_max` bytes of records, uncompressed.

    Raises KafkaFailed if the first batch is corrupt; ends before a later batch that is.
    """
    aborted = sorted(fetched.aborted, key=lambda transaction: transaction[1])
    rolled_back: set[int] = set()
    batches: list[bytes] = []
    position = offset
    for raw in split(fetched.batches):
        batch: Any = _batch(raw)
        if batch is None:
            break
        if not batch.validate_crc():
            if batches:
                break
            raise KafkaFailed(f"The batch at offset {position} is corrupt: its checksum does not match.")
        if batch.is_control_batch:
            if not is_compressed(raw) and _is_abort(batch):
                rolled_back.discard(batch.producer_id)
        elif isolation is Isolation.READ_COMMITTED and batch.is_transactional:
            while aborted and aborted[0][1] <= batch.base_offset:
                rolled_back.add(aborted.pop(0)[0])
            if batch.producer_id not in rolled_back:
                batches.append(raw)
        else:
            batches.append(raw)
        position = max(position, batch.next_offset)
    expanded = expand(batches, offset, bytes_max=bytes_max, batch_bytes_max=batch_bytes_max)
    if expanded.consumed < len(batches):
        position = max(offset, expanded.next_offset or 0)
    return Chunk(offset, position, expanded.parts, expanded.size)


def records(chunk: Chunk) -> Iterator[KafkaRecord]:
    """One after the other: a list of them would be what the garbage collector spends its time on."""
    for part in chunk.batches:
        if isinstance(part, Unreadable):
            yield unreadable_record(part)
            continue
        seen = PREFIX.unpack_from(part)[0] - 1
        try:
            for record in _parsed(part):
                seen = record.offset
                yield record
        except _MALFORMED as error:
            last = next_offset_of(part) - 1
            detail = f"the batch that ends at offset {last} is malformed: {error}"
            yield unreadable_record(Unreadable(min(seen + 1, last), last, -1, Reason.CORRUPT, detail))


def _parsed(batch: bytes) -> Iterator[KafkaRecord]:
    """Raises one of _MALFORMED."""
    seen = -1
    try:
        for record in _batch(batch):
            seen = record.offset
            yield record
    except UnicodeDecodeError:
        for parsed in _parse_leniently(batch):
            if parsed.offset > seen:
                yield parsed


def unreadable_record(part: Unreadable) -> UnreadableRecord:
    return UnreadableRecord(part.first_offset, part.timestamp_ms, part.poison)


_MALFORMED: Final = (CorruptRecordException, ValueError, OverflowError, IndexError, AssertionError)


def _batch(raw: bytes) -> Any:
    return MemoryRecords(raw).next_batch()


def _is_abort(batch: Any) -> bool:
    try:
        record = next(iter(batch), None)
        return record is not None and ControlRecord.parse(record.key) == ABORT_MARKER
    except (*_MALFORMED, TypeError, struct.error):
        return False


def _parse_leniently(raw: bytes) -> list[ParsedRecord]:
    base, _, _, magic, _, attributes, _, first_timestamp, max_timestamp, _, _, _, count = HEADER.unpack_from(raw)
    assert magic == 2, "older versions have no headers"
    body = raw[HEADER.size :]
    records: list[ParsedRecord] = []
    at = 0
    for _ in range(count):
        length, at = _varint(body, at)
        end = at + length
        at += 1  # attributes, of which none are in use
        timestamp, at = _varint(body, at)
        delta, at = _varint(body, at)
        key, at = _sized(body, at)
        value, at = _sized(body, at)
        headers: list[Header] = []
        header_count, at = _varint(body, at)
        for _ in range(header_count):
            name, at = _sized(body, at)
            content, at = _sized(body, at)
            headers.append(((name or b"").decode("utf-8", "replace"), content))
        moment = max_timestamp if attributes & 8 else first_timestamp + timestamp
        records.append(ParsedRecord(base + delta, moment, key, value, headers))
        at = end
    return records


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    if length < 0:
        return None, at
    return data[at : at + length], at + length
