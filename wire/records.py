"""Records of a batch, message format v2 (Kafka documentation, "Record").

Reading records in Python is for small batches and cold paths. `headgate.serdes.columnar` reads many records at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.wire.buffer import Buffer
from headgate.wire.compression import DECOMPRESSED_BYTES_MAX, decompress
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import (
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    BatchHeader,
    read_header,
    seal,
)
from headgate.wire.varint import encode_varint, read_varint

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, timestamp delta, offset delta, key length, value length and header count."""
RECORD_HEADER_BYTES_MIN: Final = 2
"""Key length and value length."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Record:
    """A record without its headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class RecordFields(NamedTuple):
    """The fields of a record, and the positions of its bytes. Nothing is copied."""

    offset_delta: int
    timestamp: int
    key: slice | None
    value: slice | None
    headers: slice
    """The header count and the headers."""


def read_records(batch: Buffer, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """The records of one batch. Raises InvalidBatch."""
    header = read_header(batch)
    data = decompress_records(batch, header, limit_bytes)
    for offset_delta, timestamp, key, value, _ in record_fields(data, header):
        yield Record(header.base_offset + offset_delta, timestamp, field_bytes(data, key), field_bytes(data, value))


def decompress_records(batch: Buffer, header: BatchHeader, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """The bytes of the records. Raises DecompressionFailed."""
    return decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size_bytes], limit_bytes)


def record_fields(data: Buffer, header: BatchHeader) -> Iterator[RecordFields]:
    """Parse the decompressed records of a batch. Raises InvalidBatch."""
    size = len(data)
    log_append_time = header.attributes & LOG_APPEND_TIME_FLAG
    position = 0
    for index in range(header.records_count):
        length, position = read_varint(data, position)
        end = position + length
        if length < RECORD_BYTES_MIN - 1 or end > size:
            raise InvalidBatch(f"record {index} claims {length} bytes; {size - position} bytes are left")
        timestamp_delta, field = read_varint(data, position + 1)
        offset_delta, field = read_varint(data, field)
        key, field = _read_field(data, field, end)
        value, field = _read_field(data, field, end)
        timestamp = header.max_timestamp if log_append_time else header.base_timestamp + timestamp_delta
        if not 0 <= offset_delta <= header.last_offset_delta or not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise InvalidBatch(f"record {index} has offset delta {offset_delta} and timestamp {timestamp}")
        yield RecordFields(offset_delta, timestamp, key, value, slice(field, end))
        position = end


def _read_field(data: Buffer, position: int, end: int) -> tuple[slice | None, int]:
    """The position of a key or a value, and the position after it. A negative length means null."""
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise InvalidBatch(f"a field claims {length} bytes; {end - position} bytes are left")
    return slice(position, position + length), position + length


def field_bytes(data: Buffer, field: slice | None) -> bytes | None:
    return None if field is None else bytes(data[field])


def read_record_headers(data: Buffer, headers: slice) -> list[tuple[bytes, bytes | None]]:
    """The headers of one record, from `RecordFields.headers`. Raises InvalidBatch."""
    end: int = headers.stop
    count, position = read_varint(data, headers.start)
    if not 0 <= count <= (end - position) // RECORD_HEADER_BYTES_MIN:
        raise InvalidBatch(f"a record claims {count} headers; {end - position} bytes are left")
    found: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name, position = _read_field(data, position, end)
        value, position = _read_field(data, position, end)
        found.append((field_bytes(data, name) or b"", field_bytes(data, value)))
    return found


def encode_batch(entries: Sequence[tuple[bytes | None, bytes | None]], timestamp: int) -> bytes:
    """An uncompressed batch of key and value pairs without a producer id."""
    body = bytearray()
    for index, (key, value) in enumerate(entries):
        record = bytearray(b"\x00\x00")  # attributes, timestamp delta
        record += encode_varint(index)
        for field in (key, value):
            record += encode_varint(-1 if field is None else len(field))
            record += field or b""
        record += b"\x00"  # header count
        body += encode_varint(len(record))
        body += record
    count = len(entries)
    header = HEADER.pack(0, 0, -1, MAGIC, 0, 0, count - 1, timestamp, timestamp, -1, -1, -1, count)
    return seal(bytearray(header) + body)
