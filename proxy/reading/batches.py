"""Fetched bytes to records: Kafka's record batches, version 2 and the older ones, through aiokafka's parser.

`wire.expansion` decompresses them first. Batches begin where they were written, so records before the
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

from headgate.kafka_client.decompression import BATCH_BYTES_MAX, Decompression
from headgate.proxy.errors import KafkaFailed
from headgate.proxy.reading.cluster import Fetched, Isolation
from headgate.proxy.reading.payloads import Header, KafkaRecord, UnreadableRecord
from headgate.wire.errors import InvalidBatch
from headgate.wire.expansion import (
    EXPANDED_BYTES_MAX,
    Part,
    Unreadable,
    UnreadableReason,
    expand,
    has_compressed,
    is_compressed,
    next_offset_of,
)
from headgate.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, read_header, split_batches
from headgate.wire.records import field_bytes, read_record_headers, record_fields


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
    for raw in split_batches(fetched.batches):
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
        seen = LOG_OVERHEAD.unpack_from(part)[0] - 1
        try:
            for record in _parsed(part):
                seen = record.offset
                yield record
        except _MALFORMED as error:
            last = next_offset_of(part) - 1
            detail = f"the batch that ends at offset {last} is malformed: {error}"
            yield unreadable_record(Unreadable(min(seen + 1, last), last, -1, UnreadableReason.CORRUPT, detail))


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
    return UnreadableRecord(part.first_offset, part.timestamp_ms, part)


_MALFORMED: Final = (CorruptRecordException, InvalidBatch, ValueError, OverflowError, IndexError, AssertionError)


def _batch(raw: bytes) -> Any:
    return MemoryRecords(raw).next_batch()


def _is_abort(batch: Any) -> bool:
    try:
        record = next(iter(batch), None)
        return record is not None and ControlRecord.parse(record.key) == ABORT_MARKER
    except (*_MALFORMED, TypeError, struct.error):
        return False


def _parse_leniently(raw: bytes) -> Iterator[ParsedRecord]:
    """Replace invalid UTF-8 in header names. Raises InvalidBatch."""
    header = read_header(raw)
    assert header.magic == MAGIC, "older message formats have no headers"
    data = memoryview(raw)[HEADER_BYTES:]
    for fields in record_fields(data, header):
        headers = [
            (name.decode("utf-8", "replace"), value) for name, value in read_record_headers(data, fields.headers)
        ]
        key, value = field_bytes(data, fields.key), field_bytes(data, fields.value)
        yield ParsedRecord(header.base_offset + fields.offset_delta, fields.timestamp, key, value, headers)
