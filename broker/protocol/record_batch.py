"""Kafka's record batch, format v2: a view of its header, what a broker checks, and the records inside.

A batch is opaque on the hot path: the header is read once, the checksum verified, the base offset and leader epoch
patched, the rest never touched. `records` walks the inside and is for cold paths and for batches so small that the
walk is free.

Layout: Kafka documentation, "Record Batch". The checksum covers everything from the attributes on, so neither base
offset, length, leader epoch nor magic are under it.
"""

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from crc32c import crc32c
from fastavro import parse_schema, schemaless_reader

from headgate.broker.protocol.compression import (
    ZSTD,
    DecompressionFailed,
    InflatesPastLimit,
    decompress,
    decompressed_bytes_max,
)
from headgate.broker.protocol.record_walk import InvalidBatch, read_varint, record_bytes_min, say_alike_lengths, walk

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LOG_OVERHEAD_BYTES = 12  # base offset and length, not counted by the length field
CHECKSUMMED_FROM = 21
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20

# Uncompressed batches up to this many records are walked when they arrive: less than 20 µs.
walked_records_max = 32

# Up to this many, their records are counted, in C: less than 100 µs. In larger ones the header's count is held against
# the bytes that are there, since a look at each record would cost the hot path its speed.
counted_records_max = 1024

# Compressed ones are inflated for that walk only while inflating them is as cheap: up to this size, and to this one
# when inflated.
inflated_batch_bytes_max = 16 * 1024
inflated_for_walk_bytes_max = 1024 * 1024

Buffer: TypeAlias = bytes | memoryview
"""A view is of the receive buffer, and valid while its request is handled."""

_RECORDS_AS_AVRO = parse_schema({"type": "array", "items": "bytes"})

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class BatchHeader(NamedTuple):
    """The fields of a batch's header, as they lie on the wire."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def last_sequence(self) -> int:
        """Sequence numbers wrap from the largest int32 to 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class CorruptBatch(Exception):
    """The bytes are not a batch, or not the batch that was written: CORRUPT_MESSAGE."""


class UnsupportedCodec(Exception):
    """The batch is compressed in a way that its request came too early for: UNSUPPORTED_COMPRESSION_TYPE."""


class OversizedBatch(InvalidBatch):
    """Its records inflate to more than may be looked at."""


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    # What `_make` does, without its calls.
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, position))


def checksum(batch: bytes | memoryview) -> int:
    return crc32c(memoryview(batch)[CHECKSUMMED_FROM:])


def validate_produced(payload: Buffer, *, takes_zstd: bool = True) -> tuple[Buffer, BatchHeader]:
    """What every produced payload must be: exactly one whole v2 batch that says of itself what is true.

    Returns the batch without bytes that trail it and its header. Follows Kafka's order of checks, so that the same
    fault gets the same error.
    """
    batch = payload
    size = len(batch)
    if size < HEADER_BYTES:
        if size > 16 and batch[16] in (0, 1):
            raise InvalidBatch(f"record batches must have magic 2, not {batch[16]}")
        raise InvalidBatch(f"{size} bytes hold no record batch")
    header = read_header(batch)
    (base_offset, batch_length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence,
     records_count) = header  # fmt: skip
    if magic != MAGIC:
        if magic in (0, 1):
            raise InvalidBatch(f"record batches must have magic 2, not {magic}")
        raise CorruptBatch(f"magic {magic} does not exist")
    if batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"a batch length of {batch_length} is shorter than a batch header")
    claimed = batch_length + LOG_OVERHEAD_BYTES
    if claimed > size:
        raise InvalidBatch(f"the batch says {claimed} bytes and {size} came")
    codec = attributes & CODEC_MASK
    if codec == ZSTD and not takes_zstd:
        raise UnsupportedCodec("zstd is for version 7 and later (KIP-110)")
    if claimed < size:
        batch = _first_of(payload, claimed)
        size = claimed
    if crc32c(memoryview(batch)[CHECKSUMMED_FROM:]) != crc:
        raise CorruptBatch("the checksum does not match the bytes")
    if last_offset_delta < 0:
        raise InvalidBatch("the batch has an invalid offset range")
    if records_count <= 0:
        raise InvalidBatch(f"the batch says it holds {records_count} records")
    if records_count != last_offset_delta + 1:
        raise InvalidBatch(f"the batch says {records_count} records over {last_offset_delta + 1} offsets")
    if attributes & CONTROL_FLAG:
        raise InvalidBatch("clients may not write control records")
    if producer_id >= 0 and base_sequence < 0:
        raise InvalidBatch(f"sequence number {base_sequence} with producer id {producer_id}")
    if base_offset:
        raise InvalidBatch(f"the base offset of a produced batch is 0, not {base_offset}")
    is_small = records_count <= walked_records_max
    if codec == 0:
        if records_count * record_bytes_min > size - HEADER_BYTES:
            raise InvalidBatch(f"{records_count} records cannot fit into {size - HEADER_BYTES} bytes")
        if is_small:
            walk(bytes(batch[HEADER_BYTES:]), records_count)
        elif records_count <= counted_records_max:
            count(memoryview(batch)[HEADER_BYTES:], records_count)
    elif codec > 4:
        raise InvalidBatch(f"codec {codec} does not exist")
    elif records_count * record_bytes_min > decompressed_bytes_max:
        raise InvalidBatch(f"{records_count} records cannot fit into any batch")
    elif is_small and size <= inflated_batch_bytes_max:
        _walk_inflated(batch, header)
    return batch, header


def _walk_inflated(batch: Buffer, header: BatchHeader) -> None:
    try:
        data = inflate(batch, header, inflated_for_walk_bytes_max)
    except OversizedBatch:
        # A few large records that compress very well. Too much to look at here, and no fault.
        return
    walk(bytes(data), header.records_count)


def _first_of(payload: Buffer, size: int) -> Buffer:
    """The first batch of a payload; a second whole one is refused, a part of one is dropped as Kafka does."""
    rest = len(payload) - size
    if rest > LOG_OVERHEAD_BYTES:
        claimed = int.from_bytes(payload[size + 8 : size + 12], signed=True) + LOG_OVERHEAD_BYTES
        if claimed <= rest:
            raise InvalidBatch("exactly one record batch is allowed per partition")
    return payload[:size]


def count(data: memoryview, records_count: int) -> None:
    """Check that uncompressed records are as many as the header says and fill their bytes.

    Records are bytes behind their length as a zigzag varint: with a count before them and a zero behind, they are an
    Avro array of bytes, and fastavro reads those at the speed of C. Those of one size need not even that.
    """
    if say_alike_lengths(data, records_count):
        return
    framed = b"".join((encode_varint(records_count), data, b"\x00"))
    stream = io.BytesIO(framed)
    try:
        found = schemaless_reader(stream, _RECORDS_AS_AVRO, None)
    except (EOFError, ValueError, IndexError, OverflowError, MemoryError):
        found = []
    if not isinstance(found, list) or len(found) != records_count or stream.tell() != len(framed):
        raise InvalidBatch(f"the bytes do not hold the {records_count} records that the header says")


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def inflate(
    batch: bytes | memoryview, header: BatchHeader, limit_bytes: int = decompressed_bytes_max
) -> bytes | memoryview:
    """The records part of a batch, decompressed."""
    try:
        return decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size_bytes], limit_bytes)
    except InflatesPastLimit as error:
        raise OversizedBatch(f"the records are too large: {error}") from error
    except DecompressionFailed as error:
        raise InvalidBatch(f"the records do not decompress: {error}") from error


def records(batch: bytes | memoryview, limit_bytes: int = decompressed_bytes_max) -> Iterator[Record]:
    """The records of one batch, without their headers. Raises InvalidBatch where they are not what they should be."""
    header = read_header(batch)
    yield from inflated_records(inflate(batch, header, limit_bytes), header)


def inflated_records(data: bytes | memoryview, header: BatchHeader) -> Iterator[Record]:
    """The records of one batch, whose records part is decompressed already. Raises InvalidBatch."""
    for offset_delta, timestamp, key, value in record_fields(data, header):
        yield Record(header.base_offset + offset_delta, timestamp, _content(data, key), _content(data, value))


class RecordFields(NamedTuple):
    """The fields of a record that a batch has to be walked for. Keys and values are not copied."""

    offset_delta: int
    timestamp: int
    key: slice | None
    value: slice | None


def record_fields(data: bytes | memoryview, header: BatchHeader) -> Iterator[RecordFields]:
    """Walk the decompressed records of a batch. Raises InvalidBatch."""
    size = len(data)
    log_append_time = header.attributes & LOG_APPEND_TIME_FLAG
    position = 0
    for index in range(header.records_count):
        length, position = read_varint(data, position)
        end = position + length
        if length < record_bytes_min - 1 or end > size:
            raise InvalidBatch(f"record {index} says {length} bytes and {size - position} are left")
        timestamp_delta, inside = read_varint(data, position + 1)
        offset_delta, inside = read_varint(data, inside)
        key, inside = _read_field(data, inside, end)
        value, inside = _read_field(data, inside, end)
        timestamp = header.max_timestamp if log_append_time else header.base_timestamp + timestamp_delta
        if not 0 <= offset_delta <= header.last_offset_delta or not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise InvalidBatch(f"record {index} has offset delta {offset_delta} and timestamp {timestamp}")
        yield RecordFields(offset_delta, timestamp, key, value)
        position = end


def _read_field(data: bytes | memoryview, position: int, end: int) -> tuple[slice | None, int]:
    """Where a key or a value lies, and the position behind it."""
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise InvalidBatch(f"a field says {length} bytes and {end - position} are left")
    return slice(position, position + length), position + length


def _content(data: bytes | memoryview, field: slice | None) -> bytes | None:
    return None if field is None else bytes(data[field])


def encode_batch(entries: Sequence[tuple[bytes | None, bytes | None]], timestamp: int) -> bytes:
    """A batch of key and value pairs as a producer without idempotence would send it."""
    body = bytearray()
    for index, (key, value) in enumerate(entries):
        record = bytearray(b"\x00\x00")  # attributes, timestamp delta 0
        record += encode_varint(index)
        for field in (key, value):
            if field is None:
                record += encode_varint(-1)
            else:
                record += encode_varint(len(field))
                record += field
        record += b"\x00"
        body += encode_varint(len(record))
        body += record
    count = len(entries)
    batch = bytearray(HEADER_BYTES) + body
    length = len(batch) - LOG_OVERHEAD_BYTES
    HEADER.pack_into(batch, 0, 0, length, -1, MAGIC, 0, 0, count - 1, timestamp, timestamp, -1, -1, -1, count)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CHECKSUMMED_FROM:]))
    return bytes(batch)


def encode_varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
