"""The records of a fetch response as Arrow columns: record batches of message format v2, with any codec.

Checksums, lengths and counts are checked. An invalid batch is reported with its range of offsets, and reading continues
with the next batch. A batch that the broker truncated at the end is left for the next fetch. Control batches contain no
records. Batches of aborted transactions are skipped if the response lists the transactions (READ_COMMITTED).
The kernel `serdes.columnar.kernels.records` reads the records without a Python object per record.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.engine import Engine, default_engine
from headgate.serdes.columnar.errors import BatchTooLarge
from headgate.serdes.columnar.kernels.records import CREATE_TIME
from headgate.serdes.columnar.records.decompression import RECORDS_BYTES_MAX, DecompressedRecords
from headgate.serdes.columnar.records.record_rows import RecordRows
from headgate.wire.buffer import Buffer
from headgate.wire.compression import NONE
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    read_header,
)
from headgate.wire.records import RECORD_BYTES_MIN
from headgate.wire.transactions import AbortedTransaction, TransactionFilter

INT_64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BatchFault:
    """A batch that cannot be read: its first and last offset from the header, and the reason.

    If the end of the batch is unknown, the last offset is one before the first, and reading stops at this batch.
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
    """Offset of the next fetch: after the last complete batch, readable or not. None if there is no batch."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """Records in place: `rows` refers to the bytes of the response, which must not change."""

    rows: RecordRows
    faults: tuple[BatchFault, ...]
    next_offset: int | None


class _Section(NamedTuple):
    """The records of one batch, from `start` to `end` in a buffer that all sections share."""

    header: BatchHeader
    start: int
    end: int


def read_batches(
    data: Buffer,
    partition: int,
    *,
    first_offset: int = 0,
    aborted: Iterable[AbortedTransaction] = (),
    engine: Engine | None = None,
) -> Records:
    """Skips records before `first_offset`, because a fetch may begin inside a batch. Raises only `BatchTooLarge`."""
    scanned = scan_batches(data, partition, first_offset=first_offset, aborted=aborted, engine=engine)
    return Records(scanned.rows.batch(), scanned.faults, scanned.next_offset)


def scan_batches(
    data: Buffer,
    partition: int,
    *,
    first_offset: int = 0,
    aborted: Iterable[AbortedTransaction] = (),
    engine: Engine | None = None,
) -> Scanned:
    """Same as `read_batches`, but copies nothing: for callers that need few columns."""
    view = memoryview(data).cast("B")
    batches, faults = _read_headers(view)
    ends = [batch.header.last_offset + 1 for batch in batches] + [fault.last_offset + 1 for fault in faults]
    records, sections = _visible_sections(view, batches, TransactionFilter(aborted), faults)
    rows, corrupt = _scan_rows(records, sections, partition, first_offset, engine or default_engine())
    faults += [
        _fault(section.header, "its records are malformed")
        for section, is_corrupt in zip(sections, corrupt, strict=True)
        if is_corrupt
    ]
    return Scanned(rows, tuple(sorted(faults, key=lambda fault: fault.first_offset)), max(ends, default=None))


def _read_headers(data: memoryview) -> tuple[list[_Section], list[BatchFault]]:
    """The complete batches with a valid header and checksum, as sections of `data`."""
    sections: list[_Section] = []
    faults: list[BatchFault] = []
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = read_header(data, position)
        if header.magic != MAGIC or header.batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            # The position of the next batch is unknown.
            detail = (
                f"message format {header.magic}"
                if header.magic != MAGIC
                else f"a batch length of {header.batch_length}"
            )
            faults.append(BatchFault(header.base_offset, header.base_offset - 1, f"{detail}; reading stops here"))
            break
        end = position + header.size_bytes
        if end > len(data):
            break
        detail = _header_fault(header, crc32c(data[position + ATTRIBUTES_AT : end]))
        if detail:
            faults.append(_fault(header, detail))
        else:
            sections.append(_Section(header, position + HEADER_BYTES, end))
        position = end
    return sections, faults


def _header_fault(header: BatchHeader, checksum: int) -> str:
    if checksum != header.crc:
        return "its checksum does not match"
    if header.last_offset_delta < 0 or header.base_offset < 0 or header.last_offset >= INT_64_MAX:
        return "its offsets are out of range"
    return f"its header claims {header.records_count} records" if header.records_count < 0 else ""


def _fault(header: BatchHeader, detail: str) -> BatchFault:
    last_offset = max(header.base_offset, min(header.last_offset, INT_64_MAX - 1))
    return BatchFault(header.base_offset, last_offset, detail)


def _visible_sections(
    data: memoryview, batches: list[_Section], transactions: TransactionFilter, faults: list[BatchFault]
) -> tuple[NDArray[np.uint8], list[_Section]]:
    """The records of all visible batches. If any batch is compressed, all records move to one new buffer."""
    sections: list[_Section] = []
    is_plain = all(batch.header.codec == NONE for batch in batches)
    decompressed = DecompressedRecords(0 if is_plain else len(data))
    for batch in batches:
        header = batch.header
        try:
            section = batch
            if not is_plain:
                start = decompressed.size
                decompressed.add(header.codec, data[batch.start : batch.end])
                section = _Section(header, start, decompressed.size)
            size = section.end - section.start
            if header.records_count > size // RECORD_BYTES_MIN:
                raise InvalidBatch(f"{header.records_count} records do not fit into {size} bytes")
        except InvalidBatch as error:
            faults.append(_fault(header, str(error)))
        else:
            records = data if is_plain else decompressed.data.data
            if transactions.is_visible(header, records[section.start : section.end]):
                sections.append(section)
    if is_plain:
        return np.frombuffer(data, np.uint8) if len(data) else np.zeros(1, np.uint8), sections
    return decompressed.data, sections


def _scan_rows(
    data: NDArray[np.uint8], sections: list[_Section], partition: int, first_offset: int, engine: Engine
) -> tuple[RecordRows, NDArray[np.uint8]]:
    size = sum(section.end - section.start for section in sections)
    if size > RECORDS_BYTES_MAX:
        raise BatchTooLarge(f"{size} bytes of records in one call; Arrow's offsets have 32 bits")
    rows = RecordRows.allocate(data, engine, partition, sum(section.header.records_count for section in sections))
    corrupt = np.zeros(len(sections), np.uint8)
    table = np.array(_section_table(sections), np.int64)
    found = engine.scan_records(data, table, first_offset, *rows.arrays(), corrupt)
    return rows.slice(0, found), corrupt


def _section_table(sections: list[_Section]) -> list[int]:
    """The sections as `scan_records` reads them."""
    words: list[int] = []
    for header, start, end in sections:
        log_append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME
        words += (start, end, header.base_offset, header.last_offset_delta, header.base_timestamp)
        words += (log_append_time, header.records_count)
    return words
