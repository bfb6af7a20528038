"""The records field of a fetch response to Arrow columns: record batches of format v2, in any compression.

Checksums, lengths and counts are checked; a batch that fails is reported with its range of offsets and the others are
read. A batch cut off at the end, as brokers send it, is left for the next fetch. Control batches are markers of
transactions, not records; the batches of aborted transactions are left out where the response lists them.
No Python object is made per record: `serdes.columnar.kernels.records` reads them.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.engine import Engine, default_engine
from headgate.serdes.columnar.errors import BatchTooLarge
from headgate.serdes.columnar.kernels.records import OWN_TIMESTAMP, RECORD_BYTES_MIN
from headgate.serdes.columnar.records.inflate import RECORDS_BYTES_MAX, Bytes, Inflated, NotInflated
from headgate.serdes.columnar.records.record_rows import RecordRows

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_AT = 12
"""Bytes before what the length counts: the base offset and the length itself."""
CHECKED_FROM = 21
"""Where the checksummed part begins: the attributes."""
MAGIC = 2

COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
ABORT = 0
INT_64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BatchFault:
    """A batch that cannot be read: its first and last offset as its header has them, and why.

    Where even its end is unknown, the last offset is the one before the first, and nothing behind it was read.
    """

    first_offset: int
    last_offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class Records:
    """`columns`: offset, timestamp, timestamp_type, key, value, headers, partition."""

    columns: pa.RecordBatch
    faults: tuple[BatchFault, ...]
    next_offset: int | None
    """Where the next fetch goes on: behind the last whole batch, readable or not; None where there was none."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """The same with the records where they lie: `rows` refers to the bytes given, which must stay as they are."""

    rows: RecordRows
    faults: tuple[BatchFault, ...]
    next_offset: int | None


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """As the fetch response lists it."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class _Header:
    base_offset: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    count: int
    start: int
    """Where its records begin in the response."""
    end: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & COMPRESSION

    def fault(self, detail: str) -> BatchFault:
        last_offset = max(self.base_offset, min(self.last_offset, INT_64_MAX - 1))
        return BatchFault(self.base_offset, last_offset, detail)


@dataclass(frozen=True, slots=True)
class _Section:
    """The records of one batch, from `start` to `end` in the bytes that all sections share."""

    header: _Header
    start: int
    end: int


def read_batches(
    data: Bytes,
    partition: int,
    *,
    first_offset: int = 0,
    aborted: Iterable[AbortedTransaction] = (),
    engine: Engine | None = None,
) -> Records:
    """Records before `first_offset` are left out: a fetch may begin inside a batch. Raises only `BatchTooLarge`."""
    scanned = scan_batches(data, partition, first_offset=first_offset, aborted=aborted, engine=engine)
    return Records(scanned.rows.batch(), scanned.faults, scanned.next_offset)


def scan_batches(
    data: Bytes,
    partition: int,
    *,
    first_offset: int = 0,
    aborted: Iterable[AbortedTransaction] = (),
    engine: Engine | None = None,
) -> Scanned:
    """As `read_batches`, without copying anything: for those who need few of the columns, or none."""
    view = memoryview(data).cast("B")
    headers, faults = _headers(view)
    ends = [header.last_offset + 1 for header in headers] + [fault.last_offset + 1 for fault in faults]
    records, sections = _sections(view, headers, _Transactions(aborted), faults)
    rows, corrupt = _rows(records, sections, partition, first_offset, engine or default_engine())
    faults += [
        section.header.fault("its records are not well-formed")
        for section, is_bad in zip(sections, corrupt, strict=True)
        if is_bad
    ]
    return Scanned(rows, tuple(sorted(faults, key=lambda fault: fault.first_offset)), max(ends, default=None))


def _headers(data: memoryview) -> tuple[list[_Header], list[BatchFault]]:
    """The batches that are whole and sound on the outside."""
    headers: list[_Header] = []
    faults: list[BatchFault] = []
    at = 0
    while len(data) - at >= HEADER_BYTES:
        base_offset, length, _, magic, crc, *rest = HEADER.unpack_from(data, at)
        if magic != MAGIC or length < HEADER_BYTES - LENGTH_AT:
            # Nothing says reliably where the next batch begins.
            detail = f"message format {magic}" if magic != MAGIC else f"a length of {length}"
            faults.append(BatchFault(base_offset, base_offset - 1, f"{detail}; nothing behind it was read"))
            break
        end = at + LENGTH_AT + length
        if end > len(data):
            break
        attributes, last_delta, base_time, max_time, producer_id, _, _, count = rest
        start = at + HEADER_BYTES
        header = _Header(base_offset, attributes, last_delta, base_time, max_time, producer_id, count, start, end)
        detail = _fault(header, crc, data[at + CHECKED_FROM : end])
        if detail:
            faults.append(header.fault(detail))
        else:
            headers.append(header)
        at = end
    return headers, faults


def _fault(header: _Header, crc: int, checked: memoryview) -> str:
    if crc32c(checked) != crc:
        return "its checksum does not match"
    if header.last_offset_delta < 0 or header.base_offset < 0 or header.last_offset >= INT_64_MAX:
        return "its offsets are out of range"
    return f"it says that it holds {header.count} records" if header.count < 0 else ""


def _sections(
    data: memoryview, headers: list[_Header], transactions: "_Transactions", faults: list[BatchFault]
) -> tuple[NDArray[np.uint8], list[_Section]]:
    """The records of all batches that are wanted: where they are, or inflated where one of them has to be."""
    sections: list[_Section] = []
    is_plain = all(header.codec == 0 for header in headers)
    inflated = Inflated(0 if is_plain else len(data))
    for header in headers:
        before = inflated.size
        records = data[header.start : header.end]
        try:
            if not is_plain:
                inflated.add(header.codec, records)
            start, end = (header.start, header.end) if is_plain else (before, inflated.size)
            if header.count > (end - start) // RECORD_BYTES_MIN:
                raise NotInflated(f"{header.count} records cannot be in {end - start} bytes")
        except NotInflated as error:
            faults.append(header.fault(str(error)))
        else:
            section = _Section(header, start, end)
            if transactions.wants(header, records if is_plain else inflated.data.data[start:end]):
                sections.append(section)
    if is_plain:
        return np.frombuffer(data, np.uint8) if len(data) else np.zeros(1, np.uint8), sections
    return inflated.data, sections


class _Transactions:
    """Whose batches are left out: producers with an aborted transaction, until its marker."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    def wants(self, header: _Header, records: Bytes) -> bool:
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if header.attributes & CONTROL:
            if _marker(records) == ABORT:
                self._open.discard(header.producer_id)
            return False
        return not (header.attributes & TRANSACTIONAL and header.producer_id in self._open)


def _marker(records: Bytes) -> int:
    """The type in a control record's key; its fields before the key are one byte each, as brokers write them."""
    key = bytes(records[5:9])
    return int.from_bytes(key[2:4]) if len(key) == 4 else -1


def _rows(
    data: NDArray[np.uint8], sections: list[_Section], partition: int, first_offset: int, engine: Engine
) -> tuple[RecordRows, NDArray[np.uint8]]:
    size = sum(section.end - section.start for section in sections)
    if size > RECORDS_BYTES_MAX:
        raise BatchTooLarge(f"{size} bytes of records in one call; Arrow's offsets end at 2^31")
    rows = RecordRows.room(data, engine, partition, sum(section.header.count for section in sections))
    corrupt = np.zeros(len(sections), np.uint8)
    table = np.array(_table(sections), np.int64)
    found = engine.scan_records(data, table, first_offset, *rows.arrays(), corrupt)
    return rows.slice(0, found), corrupt


def _table(sections: list[_Section]) -> list[int]:
    words: list[int] = []
    for section in sections:
        header = section.header
        one_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else OWN_TIMESTAMP
        words += [section.start, section.end, header.base_offset, header.last_offset_delta, header.base_timestamp]
        words += [one_time, header.count]
    return words
