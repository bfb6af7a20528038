"""Records of a fetch response: `wire.expansion` decompresses the batches, and aiokafka's parser reads the records.

A fetch response starts at a batch, so it can contain records before the requested offset. Control records are skipped.
With READ_COMMITTED, records of aborted transactions are skipped too. aiokafka requires UTF-8 in header names, but
brokers accept any bytes. This module parses batches with other header names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeVar

from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords

from headgate.kafka_client.decompression import BATCH_BYTES_MAX, Decompression
from headgate.kafka_client.errors import BrokerError
from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.proxy.reading.payloads import Header, KafkaRecord, UnreadableRecord
from headgate.wire.errors import InvalidBatch
from headgate.wire.expansion import (
    EXPANDED_BYTES_MAX,
    Part,
    Unreadable,
    UnreadableReason,
    expand,
    has_compressed,
    next_offset_of,
)
from headgate.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, MAGIC_AT, checksum, read_header, split_batches
from headgate.wire.records import field_bytes, read_record_headers, record_fields
from headgate.wire.transactions import TransactionFilter

LIST_RECORDS_MAX: Final = 1_000
LIST_BYTES: Final = 128 * 1024
"""Approximate size of the records in one list. One list is rendered in one time slice."""


AnyRecord = TypeVar("AnyRecord", bound=KafkaRecord)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive batches of one partition, uncompressed and not parsed. See `records`."""

    start: int
    """The requested offset. The first batch may begin before it."""
    next: int
    """The offset at which to continue. It can be beyond the last record if later records are skipped."""
    batches: list[Part]
    size: int
    """Size in uncompressed bytes."""
    rendered: dict[object, Any] = field(default_factory=dict, compare=False)
    """Cached rows by format. Readers of the same chunk share them."""


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
    """Same as `parse`, but in a thread if a batch is compressed."""
    work = partial(
        parse,
        fetched,
        offset,
        isolation,
        bytes_max=bytes_max,
        batch_bytes_max=decompression.batch_bytes_max,
        record_bytes_max=decompression.record_bytes_max,
    )
    return await decompression.run(work) if has_compressed(bytes(fetched.batches)) else work()


def parse(
    fetched: Fetched,
    offset: int,
    isolation: Isolation,
    *,
    bytes_max: int = EXPANDED_BYTES_MAX,
    batch_bytes_max: int = BATCH_BYTES_MAX,
    record_bytes_max: int | None = None,
) -> Chunk:
    """Returns up to `bytes_max` uncompressed bytes of visible records.

    Raises BrokerError if the first batch is corrupt. Stops before a later corrupt batch.
    """
    is_committed = isolation is Isolation.READ_COMMITTED
    transactions = TransactionFilter(fetched.aborted if is_committed else ())
    batches: list[bytes] = []
    position = offset
    for raw in split_batches(bytes(fetched.batches)):
        if not _is_valid(raw):
            if batches:
                break
            raise BrokerError(f"The batch at offset {position} is corrupt: its checksum does not match.")
        if raw[MAGIC_AT] < MAGIC or _is_visible(transactions, raw):
            batches.append(raw)
        position = max(position, next_offset_of(raw))
    expanded = expand(
        batches, offset, bytes_max=bytes_max, batch_bytes_max=batch_bytes_max, record_bytes_max=record_bytes_max
    )
    if expanded.consumed < len(batches):
        position = max(offset, expanded.next_offset or 0)
    return Chunk(offset, position, expanded.parts, expanded.size)


def _is_valid(raw: bytes) -> bool:
    """Checks the checksum. For format 2, this is ten times as fast as aiokafka."""
    if len(raw) > MAGIC_AT and raw[MAGIC_AT] >= MAGIC:
        return len(raw) >= HEADER_BYTES and checksum(raw) == read_header(raw).crc
    try:
        return bool(_batch(raw).validate_crc())
    except CorruptRecordException:
        return False


def _is_visible(transactions: TransactionFilter, batch: bytes) -> bool:
    header = read_header(batch)
    return transactions.is_visible(header, b"" if header.codec else memoryview(batch)[HEADER_BYTES:])


def records(chunk: Chunk) -> Iterator[KafkaRecord]:
    return chain.from_iterable(record_lists(chunk))


def record_lists(chunk: Chunk) -> Iterator[list[KafkaRecord]]:
    """Yields the records in short lists. A long list would slow down the garbage collector."""
    for part in chunk.batches:
        if isinstance(part, Unreadable):
            yield [unreadable_record(part)]
            continue
        length = _list_length(part)
        count = 0
        try:
            # `islice` calls `iter`, which fails on a partly read batch of aiokafka, but not on `chain`.
            for taken in in_lists(chain(_batch(part)), length):
                count += len(taken)
                yield taken
        except _MALFORMED:
            yield from in_lists(islice(_records_until_malformed(part), count, None), length)


def in_lists(records: Iterator[AnyRecord], length: int = LIST_RECORDS_MAX) -> Iterator[list[AnyRecord]]:
    while taken := list(islice(records, length)):
        yield taken


def _list_length(batch: bytes) -> int:
    if batch[MAGIC_AT] < MAGIC:
        return LIST_RECORDS_MAX
    return max(1, min(LIST_RECORDS_MAX, LIST_BYTES * read_header(batch).records_count // len(batch)))


def _records_until_malformed(batch: bytes) -> Iterator[KafkaRecord]:
    """Yields the records before a malformed one, and an unreadable record that replaces all others."""
    seen = LOG_OVERHEAD.unpack_from(batch)[0] - 1
    try:
        for record in _parsed(batch):
            seen = record.offset
            yield record
    except _MALFORMED as error:
        last = next_offset_of(batch) - 1
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


def _parse_leniently(raw: bytes) -> Iterator[ParsedRecord]:
    """Replaces invalid UTF-8 in header names. Raises InvalidBatch."""
    header = read_header(raw)
    assert header.magic == MAGIC, "older message formats have no headers"
    data = memoryview(raw)[HEADER_BYTES:]
    for fields in record_fields(data, header):
        headers = [
            (name.decode("utf-8", "replace"), value) for name, value in read_record_headers(data, fields.headers)
        ]
        key, value = field_bytes(data, fields.key), field_bytes(data, fields.value)
        yield ParsedRecord(header.base_offset + fields.offset_delta, fields.timestamp, key, value, headers)
