"""Builds record batches with every field settable, so that tests can send invalid batches. Also parses batches.

Implements Kafka's record-batch format v2. It shares no code with the broker: a shared bug would stay hidden.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam
from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_START = 21
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_NAMES = {number: name for name, number in CODECS.items()}
# Independent blocks of at most 64 KiB without checksums. Kafka rejects the linked blocks that most libraries write.
LZ4_FRAME_HEADER = bytes.fromhex("04224d18604082")
LZ4_END_MARK = bytes(4)
LZ4_BLOCK_BYTES_MAX = 65536


@dataclass(frozen=True, slots=True)
class NewRecord:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_700_000_000_000
    offset_delta: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch to send. Fields that are None are computed. All other fields are sent unchanged, even if invalid."""

    records: Sequence[NewRecord] = field(default_factory=lambda: [NewRecord(b"value")])
    codec: str = "none"
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    crc: int | None = None
    attributes: int = 0
    last_offset_delta: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int | None = None
    length: int | None = None
    body: bytes | None = None

    def encode(self) -> bytes:
        base_timestamp = self.base_timestamp
        if base_timestamp is None:
            base_timestamp = self.records[0].timestamp if self.records else -1
        body = self.body
        if body is None:
            plain = b"".join(_encode_record(record, i, base_timestamp) for i, record in enumerate(self.records))
            body = compress(self.codec, plain)
        count = len(self.records) if self.count is None else self.count
        last = len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta
        newest = self.max_timestamp
        if newest is None:
            newest = max((record.timestamp for record in self.records), default=-1)
        after_crc = struct.pack(
            ">hiqqqhii",
            self.attributes | CODECS[self.codec],
            last,
            base_timestamp,
            newest,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            count,
        )
        crc = crc32c(after_crc + body) if self.crc is None else self.crc
        length = 9 + len(after_crc) + len(body) if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc) + after_crc + body


def old_message_set(magic: int, value: bytes = b"old", timestamp: int = 1_700_000_000_000) -> bytes:
    """Encode one message in an older message format, magic 0 or 1."""
    import zlib

    body = struct.pack(">bb", magic, 0)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def compress(codec: str, plain: bytes) -> bytes:
    match codec:
        case "none":
            return plain
        case "gzip":
            return bytes(cramjam.gzip.compress(plain))
        case "snappy":
            # Java's Snappy framing: a magic header, then blocks with a length prefix.
            block = bytes(cramjam.snappy.compress_raw(plain))
            return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
        case "lz4":
            blocks = [plain[at : at + LZ4_BLOCK_BYTES_MAX] for at in range(0, len(plain), LZ4_BLOCK_BYTES_MAX)]
            return LZ4_FRAME_HEADER + b"".join(map(_lz4_block, blocks)) + LZ4_END_MARK
        case "zstd":
            return bytes(cramjam.zstd.compress(plain))
    raise AssertionError(f"no codec {codec!r}")


def _lz4_block(plain: bytes) -> bytes:
    block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return struct.pack("<I", len(block)) + block


def decompress(codec: str, packed: bytes) -> bytes:
    match codec:
        case "none":
            return packed
        case "gzip":
            return bytes(cramjam.gzip.decompress(packed))
        case "snappy":
            plain, at = b"", 16
            while at < len(packed):
                (size,) = struct.unpack_from(">i", packed, at)
                plain += bytes(cramjam.snappy.decompress_raw(packed[at + 4 : at + 4 + size]))
                at += 4 + size
            return plain
        case "lz4":
            return bytes(cramjam.lz4.decompress(packed))
        case "zstd":
            return bytes(cramjam.zstd.decompress(packed))
    raise AssertionError(f"no codec {codec!r}")


def parse_batches(raw: bytes) -> list[dict[str, Any]]:
    """Parse all complete batches and check their CRC. A truncated last batch (valid in Fetch) becomes {"cut": True}."""
    batches: list[dict[str, Any]] = []
    at = 0
    while at < len(raw):
        if len(raw) - at < 12 or len(raw) - at < 12 + struct.unpack_from(">i", raw, at + 8)[0]:
            batches.append({"cut": True})
            break
        fields = HEADER.unpack_from(raw, at)
        (
            base,
            length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last,
            first_time,
            newest,
            producer,
            epoch,
            sequence,
            count,
        ) = fields
        end = at + 12 + length
        codec = CODEC_NAMES[attributes & 7]
        body = decompress(codec, raw[at + HEADER.size : end])
        batches.append(
            {
                "base_offset": base,
                "leader_epoch": leader_epoch,
                "magic": magic,
                "crc_is_right": crc == crc32c(raw[at + CRC_START : end]),
                "codec": codec,
                "timestamp_type": "log_append" if attributes & 8 else "create",
                "last_offset_delta": last,
                "base_timestamp": first_time,
                "max_timestamp": newest,
                "producer_id": producer,
                "producer_epoch": epoch,
                "base_sequence": sequence,
                "records": _parse_records(body, count, base, first_time),
            }
        )
        at = end
    return batches


def _encode_record(record: NewRecord, position: int, base_timestamp: int) -> bytes:
    delta = position if record.offset_delta is None else record.offset_delta
    body = b"\x00" + varint(record.timestamp - base_timestamp) + varint(delta)
    body += _sized(record.key) + _sized(record.value) + varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name.encode()) + _sized(value)
    return varint(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while True:
        low = zigzag & 0x7F
        zigzag >>= 7
        if not zigzag:
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    zigzag = shift = 0
    while True:
        byte = raw[at]
        at += 1
        zigzag |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), at
        shift += 7


def _read_sized(raw: bytes, at: int) -> tuple[str | None, int]:
    size, at = _read_varint(raw, at)
    if size < 0:
        return None, at
    return raw[at : at + size].decode("latin-1"), at + size


def _parse_records(body: bytes, count: int, base_offset: int, base_timestamp: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    at = 0
    for _ in range(count):
        _, at = _read_varint(body, at)
        time_delta, at = _read_varint(body, at + 1)
        offset_delta, at = _read_varint(body, at)
        key, at = _read_sized(body, at)
        value, at = _read_sized(body, at)
        header_count, at = _read_varint(body, at)
        headers: list[list[str | None]] = []
        for _ in range(header_count):
            name, at = _read_sized(body, at)
            header, at = _read_sized(body, at)
            headers.append([name, header])
        records.append(
            {
                "offset": base_offset + offset_delta,
                "timestamp": base_timestamp + time_delta,
                "key": key,
                "value": value,
                "headers": headers,
            }
        )
    if at != len(body):
        raise AssertionError(f"{len(body) - at} bytes after the last record of the batch at {base_offset}")
    return records
