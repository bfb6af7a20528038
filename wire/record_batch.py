"""Record batch header, message format v2 (Kafka documentation, "Record Batch").

| position | field | bytes |
|---|---|---|
| 0 | base offset | 8 |
| 8 | batch length: the bytes after this field | 4 |
| 12 | partition leader epoch | 4 |
| 16 | magic: 2 | 1 |
| 17 | CRC-32C of everything from the attributes on | 4 |
| 21 | attributes: codec, timestamp type, transactional, control | 2 |
| 23 | last offset delta | 4 |
| 27 | base timestamp | 8 |
| 35 | max timestamp | 8 |
| 43 | producer id, producer epoch, base sequence | 8 + 2 + 4 |
| 57 | records count | 4 |

The older formats 0 and 1 share the first 12 bytes and the position of the magic byte.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from headgate.wire.buffer import Buffer

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LOG_OVERHEAD: Final = struct.Struct(">qi")
"""Base offset and batch length. The batch length does not count these bytes."""
LOG_OVERHEAD_BYTES: Final = LOG_OVERHEAD.size
BOUNDS: Final = struct.Struct(">qi11xi")
"""Base offset, batch length and last offset delta: enough to find a batch by its offset."""
APPEND_FIELDS: Final = struct.Struct(">qii")
"""Base offset, batch length and leader epoch. A broker sets them when it appends; the checksum does not cover them."""
PRODUCER: Final = struct.Struct(">qhi")
"""Producer id, producer epoch and base sequence."""

MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_AT: Final = 43
RECORDS_COUNT_AT: Final = 57

MAGIC: Final = 2
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20


class BatchHeader(NamedTuple):
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
        """Sequence numbers wrap around from 2^31 - 1 to 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    # Same result as `BatchHeader._make`, with fewer calls.
    return tuple.__new__(BatchHeader, HEADER.unpack_from(data, position))


def checksum(batch: Buffer) -> int:
    return crc32c(memoryview(batch)[ATTRIBUTES_AT:])


def write_checksum(batch: bytearray) -> None:
    struct.pack_into(">I", batch, CRC_AT, checksum(batch))


def seal(batch: bytearray) -> bytes:
    """Complete a batch: write its length and its checksum."""
    struct.pack_into(">i", batch, 8, len(batch) - LOG_OVERHEAD_BYTES)
    write_checksum(batch)
    return bytes(batch)


def split_batches(data: bytes) -> Iterator[bytes]:
    """The complete batches of a fetch response, in any format. Brokers may truncate the last batch."""
    position = 0
    while position + LOG_OVERHEAD_BYTES <= len(data):
        _, length = LOG_OVERHEAD.unpack_from(data, position)
        end = position + LOG_OVERHEAD_BYTES + length
        if length <= 0 or end > len(data):
            return
        yield data[position:end]
        position = end
