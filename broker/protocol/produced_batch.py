"""Validation of produced batches.

On the hot path, the broker reads the header, verifies the checksum and checks the number of records. It validates
single records only in small batches.
"""

import io

from crc32c import crc32c
from fastavro import parse_schema, schemaless_reader

from headgate.broker.protocol.record_walk import have_equal_lengths, walk
from headgate.wire.buffer import Buffer
from headgate.wire.compression import DECOMPRESSED_BYTES_MAX, NONE, ZSTD
from headgate.wire.errors import CorruptBatch, DecompressedTooLarge, InvalidBatch
from headgate.wire.record_batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    read_header,
)
from headgate.wire.records import RECORD_BYTES_MIN, decompress_records
from headgate.wire.varint import encode_varint

WALKED_RECORDS_MAX = 32
"""The broker validates each record of batches with up to this number of records, in less than 20 µs."""
COUNTED_RECORDS_MAX = 1024
"""The broker counts the records of uncompressed batches with up to this number of records: in C, less than 100 µs.

For larger batches, it only checks that the header's count fits into the bytes. Checking each record would slow down the
hot path.
"""
COMPRESSED_WALK_BYTES_MAX = 16 * 1024
DECOMPRESSED_WALK_BYTES_MAX = 1024 * 1024
"""The broker validates records of compressed batches only up to these sizes: decompression blocks the event loop."""

_RECORDS_AS_AVRO = parse_schema({"type": "array", "items": "bytes"})


class UnsupportedCodec(Exception):
    """The request version is too old for the codec of the batch: UNSUPPORTED_COMPRESSION_TYPE."""


def validate_produced(payload: Buffer, *, takes_zstd: bool = True) -> tuple[Buffer, BatchHeader]:
    """Check that the payload is exactly one complete and consistent batch of format v2.

    Returns the batch without trailing bytes, and its header. The checks run in Kafka's order, so that an invalid batch
    gets the same error as in Kafka. Raises InvalidBatch, CorruptBatch, UnsupportedCodec.
    """
    batch = payload
    size = len(batch)
    if size < HEADER_BYTES:
        if size > MAGIC_AT and batch[MAGIC_AT] < MAGIC:
            raise InvalidBatch(f"record batches must have magic {MAGIC}, not {batch[MAGIC_AT]}")
        raise InvalidBatch(f"{size} bytes are shorter than a record batch header")
    header = read_header(batch)
    (base_offset, batch_length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence,
     records_count) = header  # fmt: skip
    if magic != MAGIC:
        if magic in (0, 1):
            raise InvalidBatch(f"record batches must have magic {MAGIC}, not {magic}")
        raise CorruptBatch(f"magic {magic} does not exist")
    if batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"a batch length of {batch_length} is shorter than a record batch header")
    claimed = batch_length + LOG_OVERHEAD_BYTES
    if claimed > size:
        raise InvalidBatch(f"the batch length is {claimed} bytes, but the request contains {size}")
    codec = attributes & CODEC_MASK
    if codec == ZSTD and not takes_zstd:
        raise UnsupportedCodec("zstd requires version 7 or later (KIP-110)")
    if claimed < size:
        batch = _first_of(payload, claimed)
        size = claimed
    if crc32c(memoryview(batch)[ATTRIBUTES_AT:]) != crc:
        raise CorruptBatch("the checksum does not match the bytes")
    if last_offset_delta < 0:
        raise InvalidBatch("the batch has an invalid offset range")
    if records_count <= 0:
        raise InvalidBatch(f"the batch header claims {records_count} records")
    if records_count != last_offset_delta + 1:
        raise InvalidBatch(f"the batch header claims {records_count} records for {last_offset_delta + 1} offsets")
    if attributes & CONTROL_FLAG:
        raise InvalidBatch("clients may not write control records")
    if producer_id >= 0 and base_sequence < 0:
        raise InvalidBatch(f"sequence number {base_sequence} with producer id {producer_id}")
    if base_offset:
        raise InvalidBatch(f"the base offset of a produced batch must be 0, not {base_offset}")
    is_small = records_count <= WALKED_RECORDS_MAX
    if codec == NONE:
        if records_count * RECORD_BYTES_MIN > size - HEADER_BYTES:
            raise InvalidBatch(f"{records_count} records do not fit into {size - HEADER_BYTES} bytes")
        if is_small:
            walk(batch[HEADER_BYTES:], records_count)
        elif records_count <= COUNTED_RECORDS_MAX:
            count(memoryview(batch)[HEADER_BYTES:], records_count)
    elif codec > ZSTD:
        raise InvalidBatch(f"codec {codec} does not exist")
    elif records_count * RECORD_BYTES_MIN > DECOMPRESSED_BYTES_MAX:
        raise InvalidBatch(f"{records_count} records do not fit into any batch")
    elif is_small and size <= COMPRESSED_WALK_BYTES_MAX:
        _walk_compressed(batch, header)
    return batch, header


def _walk_compressed(batch: Buffer, header: BatchHeader) -> None:
    try:
        records = decompress_records(batch, header, DECOMPRESSED_WALK_BYTES_MAX)
    except DecompressedTooLarge:
        # Skip the check: a few large records that compress well are valid, but too large for the event loop.
        return
    walk(records, header.records_count)


def _first_of(payload: Buffer, size: int) -> Buffer:
    """Return the first batch of a payload. Rejects a second complete batch. As in Kafka, drops a truncated one."""
    rest = len(payload) - size
    if rest > LOG_OVERHEAD_BYTES:
        claimed = int.from_bytes(payload[size + 8 : size + 12], signed=True) + LOG_OVERHEAD_BYTES
        if claimed <= rest:
            raise InvalidBatch("exactly one record batch is allowed per partition")
    return payload[:size]


def count(data: memoryview, records_count: int) -> None:
    """Check that the bytes contain exactly `records_count` records. Raises InvalidBatch.

    A record is a zigzag varint with its length, followed by its bytes. With a count before and a zero after them, the
    records are a valid Avro array of bytes. fastavro reads this array in C. Records of equal length do not need it.
    """
    if have_equal_lengths(data, records_count):
        return
    framed = b"".join((encode_varint(records_count), data, b"\x00"))
    stream = io.BytesIO(framed)
    try:
        found = schemaless_reader(stream, _RECORDS_AS_AVRO, None)
    except (EOFError, ValueError, IndexError, OverflowError, MemoryError):
        found = []
    if not isinstance(found, list) or len(found) != records_count or stream.tell() != len(framed):
        raise InvalidBatch(f"the batch does not contain the {records_count} records that its header claims")
