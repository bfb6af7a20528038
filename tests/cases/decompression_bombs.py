"""Record batches that are small on the wire and large once decompressed."""

import struct
import zlib

import cramjam
from crc32c import crc32c

MIB = 1024 * 1024
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
HEADER = struct.Struct(">qiibIhiqqqhii")
TIMESTAMP_MS = 1_700_000_000_000


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record_head(value_bytes: int, delta: int = 0) -> bytes:
    """Everything of a record before its value; the value and one byte (no headers) follow."""
    fields = bytes(1) + varint(0) + varint(delta) + varint(-1) + varint(value_bytes)
    return varint(len(fields) + value_bytes + 1) + fields


def batch(base: int, codec: int, count: int, payload: bytes, last_offset_delta: int | None = None) -> bytes:
    """`payload`: the records, compressed with `codec`."""
    delta = count - 1 if last_offset_delta is None else last_offset_delta
    fields = struct.pack(">hiqqqhii", codec, delta, TIMESTAMP_MS, TIMESTAMP_MS, -1, -1, -1, count)
    checked = fields + payload
    return struct.pack(">qiibI", base, len(checked) + 9, 0, 2, crc32c(checked)) + checked


def one_huge_record(codec: int, mebibytes: int, base: int = 0) -> bytes:
    """One record of zeros. No memory of that size is needed to make it."""
    size = mebibytes * MIB
    head = record_head(size)
    zeros = bytes(MIB)
    tail = bytes(1)  # no headers
    if codec == GZIP:
        made = zlib.compressobj(9, zlib.DEFLATED, -15)
        parts = [made.compress(part) + made.flush(zlib.Z_FULL_FLUSH) for part in (head, zeros, tail)]
        checksum = zlib.crc32(head)
        for _ in range(mebibytes):
            checksum = zlib.crc32(zeros, checksum)
        checksum = zlib.crc32(tail, checksum)
        trailer = struct.pack("<II", checksum, (len(head) + size + 1) & 0xFFFFFFFF)
        begin = b"\x1f\x8b\x08\x00" + bytes(6)
        payload = begin + parts[0] + parts[1] * mebibytes + parts[2] + made.flush() + trailer
    elif codec == SNAPPY:
        blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (head, zeros, tail)]
        first, repeated, last = (struct.pack(">i", len(block)) + block for block in blocks)
        payload = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + first + repeated * mebibytes + last
    elif codec == LZ4:
        frames = [_lz4_blocks(part) for part in (head, zeros, tail)]
        payload = frames[0][0] + frames[0][1] + frames[1][1] * mebibytes + frames[2][1] + bytes(4)
    else:
        first, repeated, last = (bytes(cramjam.zstd.compress(part)) for part in (head, zeros, tail))
        payload = first + repeated * mebibytes + last
    return batch(base, codec, 1, payload)


def _lz4_blocks(data: bytes) -> tuple[bytes, bytes]:
    """The header of a frame of independent blocks, and its blocks."""
    made = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=False)
    made.compress(data)
    frame = bytes(made.finish())
    return frame[:7], frame[7:-4]


def compressed(codec: int, records: bytes) -> bytes:
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(records))
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(records))
    if codec == LZ4:
        made = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=False)
        made.compress(records)
        return bytes(made.finish())
    return bytes(cramjam.zstd.compress(records))


def many_records(codec: int, *values: bytes, base: int = 0) -> bytes:
    records = b"".join(record_head(len(value), delta) + value + bytes(1) for delta, value in enumerate(values))
    return batch(base, codec, len(values), compressed(codec, records))
