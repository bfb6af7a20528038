"""Fetched record batches without compression, within limits.

aiokafka decompresses a batch as a whole, whatever its size, on the event loop. Everything that reads records therefore
passes the bytes of a fetch response through `expand` first, in a thread. `expand` returns uncompressed batches with at
most the requested number of bytes. A batch that is larger is cut between two records, and the next call continues
there. Records beyond `batch_bytes_max`, and records that cannot be decompressed, become one `Unreadable`.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from crc32c import crc32c

from headgate.serdes.compression import NotDecompressed, OutOfRoom, decompress_into
from headgate.serdes.outcome import Poison, Reason

PREFIX: Final = struct.Struct(">qi")
"""Base offset and length: all message formats begin with them."""
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
MAGIC_AT: Final = 16
ATTRIBUTES_AT: Final = 21
"""The checksum covers the attributes and everything after them."""
CODEC: Final = 0x07
_LEGACY_ATTRIBUTES_AT: Final = 17

EXPANDED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Uncompressed records per call. A fetch of 1 MiB compressed 16 to 1 fits without a second fetch."""
EXPANDED_BYTES_MIN: Final = 64 * 1024
"""What `expand` decompresses at least: less would not be faster."""
BATCH_RECORDS_MAX: Final = 1_000_000
"""Records of one compressed batch. Producers write some thousands; cutting a batch costs time per record."""
LEGACY_BYTES_MAX: Final = 16 * 1024 * 1024
"""For compressed message sets of format 0 and 1, which cannot be cut. Brokers have written format 2 since 2017."""
VARINT_BYTES_MAX: Final = 10
GUESS_RATIO: Final = 8
"""First guess of the compression ratio. Unused pages of the buffer cost nothing."""
GROWTH_FACTOR: Final = 4
"""For a batch that is larger than the guess. Each attempt decompresses it from its beginning."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Records that cannot be delivered: their first and last offset, and the reason."""

    first_offset: int
    last_offset: int
    timestamp_ms: int
    reason: Reason
    detail: str

    @property
    def poison(self) -> Poison:
        detail = self.detail
        if self.last_offset > self.first_offset:
            detail = f"{detail}; this concerns offsets {self.first_offset} to {self.last_offset}"
        return Poison(self.reason, detail, None)


Part: TypeAlias = bytes | Unreadable


@dataclass(frozen=True, slots=True)
class Expanded:
    parts: list[Part]
    size: int
    next_offset: int | None
    """Where the next call continues; None if there was no batch."""
    consumed: int
    """How many of the batches, from the first, were expanded to their end."""


@dataclass(frozen=True, slots=True)
class _Header:
    base_offset: int
    attributes: int
    last_offset_delta: int
    timestamp_ms: int
    count: int

    @classmethod
    def read(cls, batch: bytes) -> "_Header":
        base, _, _, _, _, attributes, delta, _, max_timestamp, _, _, _, count = HEADER.unpack_from(batch)
        return cls(base, attributes, delta, max_timestamp, count)

    @property
    def last_offset(self) -> int:
        return self.base_offset + max(self.last_offset_delta, 0)

    def unreadable(self, first: int, reason: Reason, detail: str) -> Unreadable:
        return Unreadable(min(first, self.last_offset), self.last_offset, self.timestamp_ms, reason, detail)


def split(data: bytes) -> Iterator[bytes]:
    """The whole batches of a fetch response. Brokers may truncate the last one."""
    at = 0
    while at + PREFIX.size <= len(data):
        _, length = PREFIX.unpack_from(data, at)
        end = at + PREFIX.size + length
        if length <= 0 or end > len(data):
            return
        yield data[at:end]
        at = end


def is_compressed(batch: bytes) -> bool:
    if len(batch) <= MAGIC_AT + 1:
        return False
    if batch[MAGIC_AT] < 2:
        return bool(batch[_LEGACY_ATTRIBUTES_AT] & CODEC)
    return len(batch) >= HEADER.size and bool(batch[ATTRIBUTES_AT + 1] & CODEC)


def expand(batches: Iterable[bytes], first_offset: int, *, bytes_max: int, batch_bytes_max: int) -> Expanded:
    """Uncompressed batches with records from `first_offset` on.

    Stops after about `bytes_max` bytes; the first record is returned whatever its size up to `batch_bytes_max`.
    """
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
            if batch[MAGIC_AT] < 2:
                part = _legacy(batch, start, batch_bytes_max)
            else:
                part, reached = _expand_batch(batch, start, bytes_max - size, batch_bytes_max)
                if reached < after:
                    if not parts:
                        return Expanded([part], 0 if isinstance(part, Unreadable) else len(part), reached, 0)
                    break  # cut only the first batch: cutting costs time per record
        position = after
        parts.append(part)
        size += 0 if isinstance(part, Unreadable) else len(part)
    return Expanded(parts, size, position, len(parts))


def next_offset_of(batch: bytes) -> int:
    if batch[MAGIC_AT] < 2 or len(batch) < HEADER.size:
        return int(PREFIX.unpack_from(batch)[0]) + 1
    return _Header.read(batch).last_offset + 1


def marker_batch(unreadable: Unreadable) -> bytes:
    """A batch with one record without key and value that covers the offsets of `unreadable`."""
    record = bytes((12, 0, 0, 0, 1, 1, 0))
    delta = unreadable.last_offset - unreadable.first_offset
    time = unreadable.timestamp_ms
    header = HEADER.pack(unreadable.first_offset, 0, -1, 2, 0, 0, delta, time, time, -1, -1, -1, 1)
    return _sealed(bytearray(header + record))


def _sealed(batch: bytearray) -> bytes:
    """With length and checksum. aiokafka's parser takes `bytes` only."""
    struct.pack_into(">i", batch, 8, len(batch) - PREFIX.size)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return bytes(batch)


def _expand_batch(batch: bytes, first_offset: int, wanted: int, bytes_max: int) -> tuple[Part, int]:
    """The batch without compression, or a part of it from `first_offset` on, and the offset after it."""
    header = _Header.read(batch)
    after = header.last_offset + 1
    first = max(first_offset, header.base_offset)
    if not 0 <= header.count <= BATCH_RECORDS_MAX:
        detail = f"the batch says that it has {header.count} records; the limit is {BATCH_RECORDS_MAX}"
        return header.unreadable(first, Reason.INVALID_VALUE, detail), after
    body = _Body(batch, header.attributes & CODEC, bytes_max)
    try:
        enough = max(wanted, EXPANDED_BYTES_MIN)
        room = min(enough, GUESS_RATIO * len(batch) + EXPANDED_BYTES_MIN)
        # Batches that fit are returned as a whole, even if the guess was too small: cutting costs time per record.
        while body.grow(room) and not body.is_whole and body.size < enough:
            room = min(enough, GROWTH_FACTOR * room)
        if body.is_whole and body.size <= enough:
            return body.batch(header.attributes), after
        return _Cut(header, body, first).part(wanted)
    except NotDecompressed as error:
        detail = f"the batch at offset {header.base_offset} cannot be decompressed: {error}"
        return header.unreadable(first, Reason.CORRUPT, detail), after


class _Body:
    """The decompressed beginning of a batch, after room for its header."""

    def __init__(self, batch: bytes, codec: int, bytes_max: int) -> None:
        self._batch = batch
        self._codec = codec
        self.bytes_max = bytes_max
        self.data = bytearray()
        self.end = HEADER.size
        self.is_whole = False

    @property
    def size(self) -> int:
        return self.end - HEADER.size

    def grow(self, room: int) -> bool:
        """Decompresses at least `room` bytes if there are as many. False if the limit does not allow more."""
        if self.is_whole or self.size >= self.bytes_max:
            return False
        while True:
            room = min(room, self.bytes_max)
            self.data = bytearray()  # release the old buffer first
            self.data = bytearray(HEADER.size + room)
            compressed = memoryview(self._batch)[HEADER.size :]
            try:
                with memoryview(self.data) as target:
                    written = decompress_into(self._codec, compressed, target[HEADER.size :])
            except OutOfRoom as full:
                is_larger = full.written > self.size
                self.end = HEADER.size + full.written
                if is_larger or room == self.bytes_max:
                    return is_larger
                room = max(2 * room, full.needed or 0)
            else:
                self.end = HEADER.size + written
                self.is_whole = True
                return True

    def batch(self, attributes: int) -> bytes:
        """The whole batch without compression."""
        del self.data[self.end :]
        self.data[: HEADER.size] = self._batch[: HEADER.size]
        struct.pack_into(">h", self.data, ATTRIBUTES_AT, attributes & ~CODEC)
        return _sealed(self.data)

    def piece(self, attributes: int, start: int, end: int, last_offset_delta: int, count: int) -> bytes:
        """The records between two positions as a batch."""
        made = bytearray(self._batch[: HEADER.size])
        struct.pack_into(">hi", made, ATTRIBUTES_AT, attributes & ~CODEC, last_offset_delta)
        struct.pack_into(">i", made, HEADER.size - 4, count)
        made += memoryview(self.data)[start:end]
        return _sealed(made)


class _Cut:
    """Walks over the records of a batch to find those that are wanted."""

    def __init__(self, header: _Header, body: _Body, first_offset: int) -> None:
        self._header = header
        self._body = body
        self._first = first_offset

    def part(self, wanted: int) -> tuple[Part, int]:
        """At least one record, and more up to `wanted` bytes; and the offset after them."""
        header, body = self._header, self._body
        start = end = HEADER.size
        kept, last_delta = 0, -1
        for _ in range(header.count):
            try:
                delta, record_end = self._record(end)
            except _Broken as broken:
                if kept:
                    break
                first = max(self._first, header.base_offset + last_delta + 1)
                return header.unreadable(first, broken.reason, broken.detail), header.last_offset + 1
            if header.base_offset + delta < self._first:
                start = record_end
            elif kept and record_end - start > wanted:
                break
            else:
                kept += 1
            end, last_delta = record_end, delta
        else:
            last_delta = header.last_offset_delta  # compaction may have removed the last records
        return body.piece(header.attributes, start, end, last_delta, kept), header.base_offset + last_delta + 1

    def _record(self, at: int) -> tuple[int, int]:
        """Offset delta and end of the record at this position. Raises _Broken."""
        body = self._body
        while True:
            try:
                length, begin = _varint(body.data, at, body.end)
            except IndexError:
                if body.end - at >= VARINT_BYTES_MAX:
                    raise _Broken(Reason.CORRUPT, f"a record of the batch at {self._where} is malformed") from None
                end = body.end + 1
            else:
                end = begin + length
                if end <= body.end:
                    return self._delta(begin, end), end
            if body.is_whole:
                raise _Broken(Reason.CORRUPT, f"the batch at {self._where} ends within a record")
            size = end - HEADER.size
            if size > body.bytes_max or not body.grow(max(2 * body.size, size)):
                detail = (
                    f"the batch at {self._where} decompresses to more than {body.bytes_max} bytes "
                    "(fetch.batch.decompressed.bytes.max)"
                )
                raise _Broken(Reason.INVALID_VALUE, detail)

    def _delta(self, begin: int, end: int) -> int:
        try:
            _, position = _varint(self._body.data, begin + 1, end)
            delta, _ = _varint(self._body.data, position, end)
        except IndexError:
            delta = -1
        if not 0 <= delta <= self._header.last_offset_delta:
            raise _Broken(Reason.CORRUPT, f"a record of the batch at {self._where} is malformed")
        return delta

    @property
    def _where(self) -> str:
        return f"offset {self._header.base_offset}"


class _Broken(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _varint(data: bytearray, at: int, end: int) -> tuple[int, int]:
    """A zigzag number and the position after it. Raises IndexError if it is too long or the data ends within it."""
    result = shift = 0
    while at < end and shift < 7 * VARINT_BYTES_MAX:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
    raise IndexError


def _legacy(batch: bytes, first_offset: int, bytes_max: int) -> Part:
    """Message formats 0 and 1: the batch as it is if its size is within the limit, since aiokafka can read it then."""
    offset = int(PREFIX.unpack_from(batch)[0])
    at = _LEGACY_ATTRIBUTES_AT + 1 + (8 if batch[MAGIC_AT] else 0)
    limit = min(LEGACY_BYTES_MAX, bytes_max)
    try:
        for _ in range(2):  # key and value
            (length,) = struct.unpack_from(">i", batch, at)
            value, at = (at + 4, at + 4 + max(length, 0))
        target = memoryview(bytearray(limit))
        decompress_into(batch[_LEGACY_ATTRIBUTES_AT] & CODEC, memoryview(batch)[value:at], target)
    except (OutOfRoom, NotDecompressed, struct.error) as error:
        detail = f"the message set at offset {offset} cannot be decompressed within {limit} bytes: {error}"
        return Unreadable(min(first_offset, offset), offset, -1, Reason.INVALID_VALUE, detail)
    return batch


def has_compressed(data: bytes) -> bool:
    """Whether any batch of a fetch response is compressed."""
    at = 0
    while at + MAGIC_AT + 2 <= len(data):
        attributes_at = _LEGACY_ATTRIBUTES_AT if data[at + MAGIC_AT] < 2 else ATTRIBUTES_AT + 1
        if at + attributes_at < len(data) and data[at + attributes_at] & CODEC:
            return True
        length = PREFIX.unpack_from(data, at)[1]
        if length <= 0:
            return False
        at += PREFIX.size + length
    return False
