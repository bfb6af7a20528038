"""Fetched record batches without compression, within limits.

aiokafka decompresses a batch as a whole, whatever its size, on the event loop. Clients therefore pass the batches of a
fetch response through `expand` first, in a thread. `expand` returns uncompressed batches of about the requested size.
It splits a larger batch between two records, and the next call continues there. Records beyond `batch_bytes_max`, and
records that cannot be decompressed, become one `Unreadable`. A record above `record_bytes_max` becomes one too.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from headgate.wire.compression import decompress_into
from headgate.wire.errors import DecompressionFailed, InvalidBatch, TargetTooSmall
from headgate.wire.record_batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    RECORDS_COUNT_AT,
    BatchHeader,
    read_header,
    seal,
)
from headgate.wire.varint import VARLONG_BYTES_MAX, read_varint

_LEGACY_ATTRIBUTES_AT: Final = 17

EXPANDED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Uncompressed records per call. A fetch of 1 MiB with a compression ratio of 16 needs no second fetch."""
EXPANDED_BYTES_MIN: Final = 64 * 1024
"""Smallest decompression buffer. A smaller buffer is not faster."""
BATCH_RECORDS_MAX: Final = 1_000_000
"""Records of one compressed batch. Producers write some thousands, and splitting a batch costs time per record."""
LEGACY_BYTES_MAX: Final = 16 * 1024 * 1024
"""For compressed message sets of format 0 and 1, which cannot be split. Brokers have written format 2 since 2017."""
GUESS_RATIO: Final = 8
"""First guess of the compression ratio. Unused pages of the buffer cost nothing."""
GROWTH_FACTOR: Final = 4
"""For a batch that is larger than the guess. Each attempt decompresses it from its beginning."""


class UnreadableReason(Enum):
    CORRUPT = auto()
    TOO_LARGE = auto()
    """The records decompress to more than `batch_bytes_max`."""
    RECORD_TOO_LARGE = auto()
    """The record is larger than `record_bytes_max`."""
    LIMIT_EXCEEDED = auto()
    """The batch exceeds a fixed limit of this module."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Records that cannot be delivered: their first and last offset, and the reason."""

    first_offset: int
    last_offset: int
    timestamp_ms: int
    reason: UnreadableReason
    detail: str

    @property
    def description(self) -> str:
        if self.last_offset > self.first_offset:
            return f"{self.detail}; this concerns offsets {self.first_offset} to {self.last_offset}"
        return self.detail


Part: TypeAlias = bytes | Unreadable


@dataclass(frozen=True, slots=True)
class Expanded:
    parts: list[Part]
    size: int
    next_offset: int | None
    """Where the next call continues; None if there was no batch."""
    consumed: int
    """How many of the batches, from the first, were expanded to their end."""


def is_compressed(batch: bytes) -> bool:
    if len(batch) <= MAGIC_AT + 1:
        return False
    if batch[MAGIC_AT] < MAGIC:
        return bool(batch[_LEGACY_ATTRIBUTES_AT] & CODEC_MASK)
    return len(batch) >= HEADER_BYTES and bool(batch[ATTRIBUTES_AT + 1] & CODEC_MASK)


def has_compressed(data: bytes) -> bool:
    """Whether any batch of a fetch response is compressed."""
    position = 0
    while position + MAGIC_AT + 2 <= len(data):
        attributes_at = _LEGACY_ATTRIBUTES_AT if data[position + MAGIC_AT] < MAGIC else ATTRIBUTES_AT + 1
        if position + attributes_at < len(data) and data[position + attributes_at] & CODEC_MASK:
            return True
        length = LOG_OVERHEAD.unpack_from(data, position)[1]
        if length <= 0:
            return False
        position += LOG_OVERHEAD_BYTES + length
    return False


def next_offset_of(batch: bytes) -> int:
    if batch[MAGIC_AT] < MAGIC or len(batch) < HEADER_BYTES:
        return int(LOG_OVERHEAD.unpack_from(batch)[0]) + 1
    return _last_offset(read_header(batch)) + 1


def expand(
    batches: Iterable[bytes],
    first_offset: int,
    *,
    bytes_max: int,
    batch_bytes_max: int,
    record_bytes_max: int | None = None,
) -> Expanded:
    """Uncompressed batches with records from `first_offset` on.

    Stops after about `bytes_max` bytes. The first record is returned whatever its size, up to `record_bytes_max`.
    """
    limits = _Limits(batch_bytes_max, batch_bytes_max if record_bytes_max is None else record_bytes_max)
    parts: list[Part] = []
    size = 0
    position: int | None = None
    for batch in batches:
        if size >= bytes_max:
            break
        after = next_offset_of(batch)
        start = first_offset if position is None else max(position, first_offset)
        part: Part = batch
        if is_compressed(batch):
            if batch[MAGIC_AT] < MAGIC:
                part = _legacy(batch, start, batch_bytes_max)
            else:
                part, reached = _expand_batch(batch, start, bytes_max - size, limits)
                if reached < after:
                    if not parts:
                        return Expanded([part], 0 if isinstance(part, Unreadable) else len(part), reached, 0)
                    break  # split only the first batch: splitting costs time per record
        position = after
        parts.append(part)
        size += 0 if isinstance(part, Unreadable) else len(part)
    return Expanded(parts, size, position, len(parts))


def marker_batch(unreadable: Unreadable) -> bytes:
    """A batch with one record without key and value that covers the offsets of `unreadable`."""
    record = bytes((12, 0, 0, 0, 1, 1, 0))
    delta = unreadable.last_offset - unreadable.first_offset
    time = unreadable.timestamp_ms
    header = HEADER.pack(unreadable.first_offset, 0, -1, MAGIC, 0, 0, delta, time, time, -1, -1, -1, 1)
    return seal(bytearray(header + record))


def _last_offset(header: BatchHeader) -> int:
    return header.base_offset + max(header.last_offset_delta, 0)


def _unreadable(header: BatchHeader, first: int, reason: UnreadableReason, detail: str) -> Unreadable:
    last = _last_offset(header)
    return Unreadable(min(first, last), last, header.max_timestamp, reason, detail)


@dataclass(frozen=True, slots=True)
class _Limits:
    batch_bytes: int
    record_bytes: int


def _expand_batch(batch: bytes, first_offset: int, wanted: int, limits: _Limits) -> tuple[Part, int]:
    """The batch without compression, or a part of it from `first_offset` on, and the offset after it."""
    header = read_header(batch)
    after = _last_offset(header) + 1
    first = max(first_offset, header.base_offset)
    if not 0 <= header.records_count <= BATCH_RECORDS_MAX:
        detail = f"the batch header claims {header.records_count} records; the limit is {BATCH_RECORDS_MAX}"
        return _unreadable(header, first, UnreadableReason.LIMIT_EXCEEDED, detail), after
    body = _Body(batch, header, limits.batch_bytes)
    try:
        enough = max(wanted, EXPANDED_BYTES_MIN)
        room = min(enough, GUESS_RATIO * len(batch) + EXPANDED_BYTES_MIN)
        # Batches that fit are returned as a whole, even if the guess was too small: splitting costs time per record.
        while body.grow(room) and not body.is_whole and body.size < enough:
            room = min(enough, GROWTH_FACTOR * room)
        if body.is_whole and body.size <= min(enough, limits.record_bytes):
            return body.batch(), after
        return _split(header, body, first, wanted, limits.record_bytes)
    except DecompressionFailed as error:
        detail = f"the batch at offset {header.base_offset} cannot be decompressed: {error}"
        return _unreadable(header, first, UnreadableReason.CORRUPT, detail), after


class _Body:
    """The decompressed beginning of a batch, after room for its header."""

    def __init__(self, batch: bytes, header: BatchHeader, bytes_max: int) -> None:
        self._batch = batch
        self._header = header
        self.bytes_max = bytes_max
        self.data = bytearray()
        self.end = HEADER_BYTES
        self.is_whole = False

    @property
    def size(self) -> int:
        return self.end - HEADER_BYTES

    def grow(self, room: int) -> bool:
        """Decompresses at least `room` bytes if there are as many. False if the limit does not allow more."""
        if self.is_whole or self.size >= self.bytes_max:
            return False
        while True:
            room = min(room, self.bytes_max)
            self.data = bytearray()  # release the old buffer first
            self.data = bytearray(HEADER_BYTES + room)
            compressed = memoryview(self._batch)[HEADER_BYTES:]
            try:
                with memoryview(self.data) as target:
                    written = decompress_into(self._header.codec, compressed, target[HEADER_BYTES:])
            except TargetTooSmall as full:
                is_larger = full.written > self.size
                self.end = HEADER_BYTES + full.written
                if is_larger or room == self.bytes_max:
                    return is_larger
                room = max(2 * room, full.needed or 0)
            else:
                self.end = HEADER_BYTES + written
                self.is_whole = True
                return True

    def batch(self) -> bytes:
        """The whole batch without compression."""
        del self.data[self.end :]
        self.data[:HEADER_BYTES] = self._batch[:HEADER_BYTES]
        struct.pack_into(">h", self.data, ATTRIBUTES_AT, self._header.attributes & ~CODEC_MASK)
        return seal(self.data)

    def piece(self, start: int, end: int, last_offset_delta: int, count: int) -> bytes:
        """The records between two positions as a batch."""
        batch = bytearray(self._batch[:HEADER_BYTES])
        struct.pack_into(">hi", batch, ATTRIBUTES_AT, self._header.attributes & ~CODEC_MASK, last_offset_delta)
        struct.pack_into(">i", batch, RECORDS_COUNT_AT, count)
        batch += memoryview(self.data)[start:end]
        return seal(batch)


class _Broken(Exception):
    def __init__(self, reason: UnreadableReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _split(header: BatchHeader, body: _Body, first_offset: int, wanted: int, record_bytes_max: int) -> tuple[Part, int]:
    """At least one record from `first_offset` on, more up to `wanted` bytes, and the offset after them."""
    start = end = HEADER_BYTES
    kept, last_delta = 0, -1
    for _ in range(header.records_count):
        try:
            delta, record_end = _next_record(header, body, end)
        except _Broken as broken:
            if kept:
                break
            first = max(first_offset, header.base_offset + last_delta + 1)
            return _unreadable(header, first, broken.reason, broken.detail), _last_offset(header) + 1
        offset, size = header.base_offset + delta, record_end - end
        if offset < first_offset:
            start = record_end
        elif kept and (record_end - start > wanted or size > record_bytes_max):
            break
        elif size > record_bytes_max:
            detail = f"the record at offset {offset} has {size} bytes; the limit is {record_bytes_max}"
            reason = UnreadableReason.RECORD_TOO_LARGE
            return Unreadable(offset, offset, header.max_timestamp, reason, detail), offset + 1
        else:
            kept += 1
        end, last_delta = record_end, delta
    else:
        last_delta = header.last_offset_delta  # compaction may have removed the last records
    return body.piece(start, end, last_delta, kept), header.base_offset + last_delta + 1


def _next_record(header: BatchHeader, body: _Body, position: int) -> tuple[int, int]:
    """Offset delta and end of the record at this position. Decompresses more if necessary. Raises _Broken."""
    batch = f"the batch at offset {header.base_offset}"
    while True:
        # The buffer behind `body.end` is not filled yet.
        with memoryview(body.data)[: body.end] as data:
            try:
                length, begin = read_varint(data, position)
            except InvalidBatch:
                if body.end - position >= VARLONG_BYTES_MAX:
                    raise _Broken(UnreadableReason.CORRUPT, f"a record of {batch} is malformed") from None
                end = body.end + 1
            else:
                end = begin + length
                if length < 0:
                    raise _Broken(UnreadableReason.CORRUPT, f"a record of {batch} is malformed")
                if end <= body.end:
                    return _offset_delta(header, data[:end], begin), end
        if body.is_whole:
            raise _Broken(UnreadableReason.CORRUPT, f"{batch} ends within a record")
        size = end - HEADER_BYTES
        if size > body.bytes_max or not body.grow(max(2 * body.size, size)):
            detail = f"{batch} decompresses to more than {body.bytes_max} bytes"
            raise _Broken(UnreadableReason.TOO_LARGE, detail)


def _offset_delta(header: BatchHeader, data: memoryview, begin: int) -> int:
    """The offset delta of the record between `begin` and the end of `data`. Raises _Broken."""
    try:
        _, position = read_varint(data, begin + 1)
        delta, _ = read_varint(data, position)
    except InvalidBatch:
        delta = -1
    if not 0 <= delta <= header.last_offset_delta:
        detail = f"a record of the batch at offset {header.base_offset} is malformed"
        raise _Broken(UnreadableReason.CORRUPT, detail)
    return delta


def _legacy(batch: bytes, first_offset: int, bytes_max: int) -> Part:
    """Message formats 0 and 1: the unchanged message set if its size is within the limit, for aiokafka to read."""
    offset = int(LOG_OVERHEAD.unpack_from(batch)[0])
    position = _LEGACY_ATTRIBUTES_AT + 1 + (8 if batch[MAGIC_AT] else 0)
    limit = min(LEGACY_BYTES_MAX, bytes_max)
    try:
        for _ in range(2):  # key and value
            (length,) = struct.unpack_from(">i", batch, position)
            value, position = (position + 4, position + 4 + max(length, 0))
        target = memoryview(bytearray(limit))
        decompress_into(batch[_LEGACY_ATTRIBUTES_AT] & CODEC_MASK, memoryview(batch)[value:position], target)
    except (TargetTooSmall, DecompressionFailed, struct.error) as error:
        detail = f"the message set at offset {offset} cannot be decompressed within {limit} bytes: {error}"
        return Unreadable(min(first_offset, offset), offset, -1, UnreadableReason.LIMIT_EXCEEDED, detail)
    return batch
