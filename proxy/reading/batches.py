"""Fetched bytes to records: Kafka's record batches, version 2 and the older ones, through aiokafka's parser.

Batches begin where they were written, so records before the offset asked for are dropped here; so are control records
and, for readers of committed data, records of transactions that were rolled back. aiokafka insists on UTF-8 in the
names of headers, which brokers do not: such batches are parsed here, leniently.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka import codec
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.memory_records import MemoryRecords

from proxy.errors import KafkaFailed
from proxy.reading.cluster import Fetched, Isolation
from proxy.reading.payloads import Header, KafkaRecord

_PREFIX: Final = struct.Struct(">qi")
"""Base offset and length: every version begins with them."""
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_MAGIC_AT: Final = 16
_DECOMPRESS: Final = {1: codec.gzip_decode, 2: codec.snappy_decode, 3: codec.lz4_decode, 4: codec.zstd_decode}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Batches of one partition that follow on one another, not yet taken apart: see `records`."""

    start: int
    """The offset that was asked for. The first batch may begin before it."""
    next: int
    """Where to go on; beyond the last record where others were left out."""
    batches: list[bytes]
    size: int
    """Bytes on the wire."""
    rendered: dict[object, Any] = field(default_factory=dict, compare=False)
    """Rows in the formats that were asked for: readers that wait together share them."""


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


def parse(fetched: Fetched, offset: int, isolation: Isolation) -> Chunk:
    """Raises KafkaFailed where the very first batch is broken; ends before a later one that is."""
    data = fetched.batches
    aborted = sorted(fetched.aborted, key=lambda transaction: transaction[1])
    rolled_back: set[int] = set()
    batches: list[bytes] = []
    position, at = offset, 0
    while at + _PREFIX.size <= len(data):
        _, length = _PREFIX.unpack_from(data, at)
        end = at + _PREFIX.size + length
        if length <= 0 or end > len(data):
            break  # the broker cuts the last batch where the size is reached
        raw = data[at:end]
        at = end
        batch: Any = MemoryRecords(raw).next_batch()
        if batch is None:
            break
        if not batch.validate_crc():
            if batches:
                break
            raise KafkaFailed(f"The batch at offset {position} is corrupt: its checksum does not match.")
        if batch.is_control_batch:
            if _is_abort(batch):
                rolled_back.discard(batch.producer_id)
        elif isolation is Isolation.READ_COMMITTED and batch.is_transactional:
            while aborted and aborted[0][1] <= batch.base_offset:
                rolled_back.add(aborted.pop(0)[0])
            if batch.producer_id not in rolled_back:
                batches.append(raw)
        else:
            batches.append(raw)
        position = max(position, batch.next_offset)
    return Chunk(offset, position, batches, len(data))


def records(chunk: Chunk) -> Iterator[KafkaRecord]:
    """One after the other: a list of them would be what the garbage collector spends its time on."""
    for raw in chunk.batches:
        batch: Any = MemoryRecords(raw).next_batch()
        seen = -1
        try:
            for record in batch:
                seen = record.offset
                yield record
        except UnicodeDecodeError:
            for parsed in _parse_leniently(raw):
                if parsed.offset > seen:
                    yield parsed


def _is_abort(batch: Any) -> bool:
    record = next(iter(batch), None)
    return record is not None and ControlRecord.parse(record.key) == ABORT_MARKER


def _parse_leniently(raw: bytes) -> list[ParsedRecord]:
    base, _, _, magic, _, attributes, _, first_timestamp, max_timestamp, _, _, _, count = _HEADER.unpack_from(raw)
    assert magic == 2, "older versions have no headers"
    body = raw[_HEADER.size :]
    if attributes & 7:
        body = _DECOMPRESS[attributes & 7](body)
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
