"""Structural check of the records of a batch: their number, their order and their lengths.

The broker runs this check for every small produced batch, so the check is optimized for speed. Most small batches
contain records of equal size. The fast path compares them column by column, with a few slices. Other records are
checked one by one.

Layout: Kafka documentation, "Record".
"""

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from headgate.wire.buffer import Buffer
from headgate.wire.errors import InvalidBatch
from headgate.wire.records import RECORD_BYTES_MIN, RECORD_HEADER_BYTES_MIN
from headgate.wire.varint import VARLONG_BYTES_MAX, read_unsigned_varint, read_varint

WALKED_SINGLY_MAX = 3
"""Up to this number of records, checking each record is faster than comparing columns."""
COPIED_BYTES_MAX = 1024 * 1024
"""Buffers up to this size are copied to `bytes`, which Python indexes faster. Larger copies hold the GIL too long."""
LAYOUTS_MAX = 256
"""Limit on cached column layouts. A producer repeats a few layouts."""

_OFFSET_DELTAS = bytes(range(0, 128, 2))
"""The encoded offset deltas of the first 64 records. Each takes one byte."""


def walk(data: Buffer, count: int) -> None:
    """Check that `data` contains exactly `count` decompressed records, in order. Raises InvalidBatch."""
    if len(data) <= COPIED_BYTES_MAX:
        data = bytes(data)
    if count <= WALKED_SINGLY_MAX or not isinstance(data, bytes) or not _are_uniform(data, count):
        _walk_each(data, count)


def _are_uniform(data: bytes, count: int) -> bool:
    """Whether the records differ only in keys, values, offset deltas and timestamp deltas of one byte.

    If False, the records may still be valid. Check them one by one.
    """
    if len(data) < count * RECORD_BYTES_MIN:
        return False
    # Length, attributes, two deltas and the key length determine the layout.
    head_bytes = 5 if data[0] < 0x80 else 6
    if data[head_bytes - 1] > 0x7F:
        head_bytes += 1
    columns = _columns(len(data), count, data[:head_bytes])
    return columns is not None and columns.take(data) == columns.expected and data[columns.timestamps].isascii()


class _Columns(NamedTuple):
    """`take` extracts the bytes at certain positions of every record. `expected` contains their values if uniform."""

    take: Callable[[bytes], tuple[bytes, ...]]
    expected: tuple[bytes, ...]
    timestamps: slice


@lru_cache(LAYOUTS_MAX)
def _columns(size: int, count: int, head: bytes) -> _Columns | None:
    """Return the columns of `count` records in `size` bytes that start with `head`. None if they cannot be uniform."""
    stride, rest = divmod(size, count)
    if rest or count > len(_OFFSET_DELTAS) or stride <= RECORD_BYTES_MIN:
        return None
    length = _short_number(head, 0)
    if length is None or length.value & 1 or length.end + (length.value >> 1) != stride:
        return None
    key_at = length.end + 3
    key_length = _short_number(head, key_at)
    if key_length is None:
        return None
    value_at = key_length.end + (0 if key_length.value & 1 else key_length.value >> 1)
    value_length = _length_of_rest(stride - 1 - value_at)
    if value_length is None:
        return None
    expected = {
        **{column: head[column : column + 1] * count for column in range(length.end)},
        key_at - 1: _OFFSET_DELTAS[:count],
        **{column: head[column : column + 1] * count for column in range(key_at, key_length.end)},
        **{value_at + number: bytes((byte,)) * count for number, byte in enumerate(value_length)},
        stride - 1: bytes(count),
    }
    take = itemgetter(*(slice(column, None, stride) for column in expected))
    return _Columns(take, tuple(expected.values()), slice(key_at - 2, None, stride))


def _length_of_rest(rest: int) -> bytes | None:
    """Return the encoded length of a value if the length and the value together take `rest` bytes.

    None if the length takes more than two bytes, or if the value can be either null or empty.
    """
    if 2 <= rest <= 64:
        return bytes(((rest - 1) << 1,))
    if 66 <= rest < 8194:
        zigzag = (rest - 2) << 1
        return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))
    return None


def have_equal_lengths(data: memoryview, count: int) -> bool:
    """Whether `count` records of equal length fill the buffer. Compares columns instead of reading each record.

    From the 65th record on, the offset delta takes one more byte, so the length may change there. If False, the records
    may still be valid.
    """
    first = min(count, len(_OFFSET_DELTAS))
    end = _end_of_equal(data, 0, first)
    if count > first and end > 0:
        end = _end_of_equal(data, end, count - first)
    return end == len(data)


def _end_of_equal(data: memoryview, position: int, count: int) -> int:
    """Return the end position of `count` records of equal length, or -1 if the lengths differ."""
    if position + RECORD_BYTES_MIN > len(data):
        return -1
    length = _short_number(data, position)
    if length is None or length.value & 1:
        return -1
    stride = length.end - position + (length.value >> 1)
    end = position + stride * count
    if stride < RECORD_BYTES_MIN or end > len(data):
        return -1
    for column in range(position, length.end):
        if bytes(data[column:end:stride]) != bytes(data[column : column + 1]) * count:
            return -1
    return end


class _ShortNumber(NamedTuple):
    """A varint of one or two bytes, before zigzag decoding, and the position after it."""

    value: int
    end: int


def _short_number(data: Buffer, position: int) -> _ShortNumber | None:
    first = data[position]
    if first < 0x80:
        return _ShortNumber(first, position + 1)
    second = data[position + 1]
    if second < 0x80:
        return _ShortNumber(first & 0x7F | second << 7, position + 2)
    return None


def _walk_each(data: Buffer, count: int) -> None:
    size = len(data)
    position = 0
    try:
        for index in range(count):
            # Fast path: nearly all varints have one or two bytes, so they are read inline.
            length = data[position]
            start = position + 1
            if length > 0x7F:
                second = data[start]
                if second > 0x7F:
                    length, start = read_unsigned_varint(data, position)
                else:
                    length = length & 0x7F | second << 7
                    start += 1
            length = (length >> 1) ^ -(length & 1)
            position = start + length
            if length < RECORD_BYTES_MIN - 1 or position > size:
                raise InvalidBatch(f"record {index} claims {length} bytes; {size - start} bytes are left")
            inside = start + 1
            while data[inside] > 0x7F:
                inside += 1
            if inside - start > VARLONG_BYTES_MAX:
                raise InvalidBatch(f"the timestamp delta of record {index} is longer than {VARLONG_BYTES_MAX} bytes")
            inside += 1
            byte = data[inside]
            if byte > 0x7F or byte & 1:
                offset_delta, inside = read_varint(data, inside)
            else:
                offset_delta = byte >> 1
                inside += 1
            if offset_delta != index:
                raise InvalidBatch(f"record {index} has offset delta {offset_delta}")
            # Key and value. An odd zigzag number is negative and means null.
            for _ in (0, 1):
                length = data[inside]
                inside += 1
                if length > 0x7F:
                    second = data[inside]
                    if second > 0x7F:
                        length, inside = read_unsigned_varint(data, inside - 1)
                    else:
                        length = length & 0x7F | second << 7
                        inside += 1
                if not length & 1:
                    inside += length >> 1
            if inside >= position:
                raise InvalidBatch(f"record {index} ends before its header count")
            inside = inside + 1 if data[inside] == 0 else _skip_headers(data, inside, position)
            if inside != position:
                raise InvalidBatch(f"the fields of record {index} do not fill its bytes")
    except IndexError:
        raise InvalidBatch("a record is truncated") from None
    if position != size:
        raise InvalidBatch(f"{size - position} bytes are left after {count} records")


def records_without_key(data: Buffer, count: int) -> list[int]:
    """Return the indexes of the records with a null key. Call `walk` first."""
    if len(data) <= COPIED_BYTES_MAX:
        data = bytes(data)
    found = []
    position = 0
    for index in range(count):
        length = data[position]
        start = position + 1
        if length > 0x7F:
            length, start = read_unsigned_varint(data, position)
        position = start + (length >> 1)
        # After the attributes: timestamp delta, offset delta, key length. An odd key length is negative and means null.
        inside = start + 1
        while data[inside] > 0x7F:
            inside += 1
        inside += 1
        while data[inside] > 0x7F:
            inside += 1
        if data[inside + 1] & 1:
            found.append(index)
    return found


def _skip_headers(data: Buffer, position: int, end: int) -> int:
    count, position = read_varint(data, position)
    if not 0 <= RECORD_HEADER_BYTES_MIN * count <= end - position:
        raise InvalidBatch(f"a record claims {count} headers; {end - position} bytes are left")
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise InvalidBatch("a record header has no key")
        length, position = read_varint(data, position + length)
        position += max(length, 0)
        if position > end:
            raise InvalidBatch("a header exceeds its record")
    return position
