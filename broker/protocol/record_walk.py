"""The records inside a batch, looked at without being read: are they as many as the header says, in order, and whole?

Runs for every small batch that is produced, so it is written for speed: records of one size, which is what most small
batches hold, are checked column by column in a few slices; others are walked with the short numbers read in place.

Layout: Kafka documentation, "Record".
"""

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

# A record needs a length, attributes, two deltas, two lengths and a header count: seven bytes at the least.
record_bytes_min = 7

# 64 bits, seven to a byte.
varint_bytes_max = 10

# Up to so many, walking each costs less than comparing columns.
walked_singly_max = 3

# Larger views are walked in place: copying them takes long and holds the interpreter lock.
copied_bytes_max = 1024 * 1024

# Kinds of batches whose columns are remembered; a producer sends few of them, over and over.
remembered_kinds_max = 256

# Offset deltas of one byte each, as records that follow one another carry them.
_OFFSET_DELTAS = bytes(range(0, 128, 2))


class InvalidBatch(Exception):
    """A well-formed batch that breaks a rule: INVALID_RECORD."""


def walk(data: bytes | memoryview, count: int) -> None:
    """Check that inflated records are `count`, in order, and fill their bytes. Raises InvalidBatch.

    Small views are worth a copy: bytes are walked faster.
    """
    if len(data) <= copied_bytes_max:
        data = bytes(data)
    if count <= walked_singly_max or isinstance(data, memoryview) or not _are_plain_and_alike(data, count):
        _walk_each(data, count)


def _are_plain_and_alike(data: bytes, count: int) -> bool:
    """Whether the records differ in nothing but their keys, values, offsets and small timestamp deltas.

    False says nothing: the records have to be walked.
    """
    if len(data) < count * record_bytes_min:
        return False
    # The length, attributes, two deltas and the key's length: all that tells one kind from another.
    head_bytes = 5 if data[0] < 0x80 else 6
    if data[head_bytes - 1] > 0x7F:
        head_bytes += 1
    columns = _columns(len(data), count, data[:head_bytes])
    return columns is not None and columns.take(data) == columns.expected and data[columns.timestamps].isascii()


class _Columns(NamedTuple):
    """The bytes at certain places of every record, and what they are where all are alike."""

    take: Callable[[bytes], tuple[bytes, ...]]
    expected: tuple[bytes, ...]
    timestamps: slice


@lru_cache(remembered_kinds_max)
def _columns(size: int, count: int, head: bytes) -> _Columns | None:
    """For `count` records in `size` bytes that begin with `head`; None for others than plain ones of one size."""
    stride, rest = divmod(size, count)
    if rest or count > len(_OFFSET_DELTAS) or stride <= record_bytes_min:
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
    """What a value's length looks like if it and the value take `rest` bytes.

    None where that is no short number, and where it could be nothing as well as null.
    """
    if 2 <= rest <= 64:
        return bytes(((rest - 1) << 1,))
    if 66 <= rest < 8194:
        zigzag = (rest - 2) << 1
        return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))
    return None


def say_alike_lengths(data: memoryview, count: int) -> bool:
    """Whether the lengths that records say of themselves fill the bytes, found out by comparing columns.

    So it is for records of one size, up to the 65th, whose offset delta takes a byte more, and from there on. False
    says nothing.
    """
    first = min(count, len(_OFFSET_DELTAS))
    end = _end_of_alike(data, 0, first)
    if count > first and end > 0:
        end = _end_of_alike(data, end, count - first)
    return end == len(data)


def _end_of_alike(data: memoryview, position: int, count: int) -> int:
    """Where `count` records that say the same length end; -1 if they do not."""
    if position + record_bytes_min > len(data):
        return -1
    length = _short_number(data, position)
    if length is None or length.value & 1:
        return -1
    stride = length.end - position + (length.value >> 1)
    end = position + stride * count
    if stride < record_bytes_min or end > len(data):
        return -1
    for column in range(position, length.end):
        if bytes(data[column:end:stride]) != bytes(data[column : column + 1]) * count:
            return -1
    return end


class _ShortNumber(NamedTuple):
    """A number of one or two bytes, still zigzag, and the position behind it."""

    value: int
    end: int


def _short_number(data: bytes | memoryview, position: int) -> _ShortNumber | None:
    first = data[position]
    if first < 0x80:
        return _ShortNumber(first, position + 1)
    second = data[position + 1]
    if second < 0x80:
        return _ShortNumber(first & 0x7F | second << 7, position + 2)
    return None


def _walk_each(data: bytes | memoryview, count: int) -> None:
    size = len(data)
    position = 0
    try:
        for index in range(count):
            # Numbers of one or two bytes, nearly all of them, are read in place.
            length = data[position]
            start = position + 1
            if length > 0x7F:
                second = data[start]
                if second > 0x7F:
                    length, start = _read_zigzag(data, position)
                else:
                    length = length & 0x7F | second << 7
                    start += 1
            length = (length >> 1) ^ -(length & 1)
            position = start + length
            if length < record_bytes_min - 1 or position > size:
                raise InvalidBatch(f"record {index} says {length} bytes and {size - start} are left")
            inside = start + 1
            while data[inside] > 0x7F:
                inside += 1
            if inside - start > varint_bytes_max:
                raise InvalidBatch(f"the timestamp of record {index} is longer than {varint_bytes_max} bytes")
            inside += 1
            byte = data[inside]
            if byte > 0x7F or byte & 1:
                offset_delta, inside = read_varint(data, inside)
            else:
                offset_delta = byte >> 1
                inside += 1
            if offset_delta != index:
                raise InvalidBatch(f"record {index} carries offset delta {offset_delta}")
            # The key and the value: odd is negative, which is to say null.
            for _ in (0, 1):
                length = data[inside]
                inside += 1
                if length > 0x7F:
                    second = data[inside]
                    if second > 0x7F:
                        length, inside = _read_zigzag(data, inside - 1)
                    else:
                        length = length & 0x7F | second << 7
                        inside += 1
                if not length & 1:
                    inside += length >> 1
            if inside >= position:
                raise InvalidBatch(f"record {index} ends before the number of its headers")
            inside = inside + 1 if data[inside] == 0 else _skip_headers(data, inside, position)
            if inside != position:
                raise InvalidBatch(f"the fields of record {index} do not fill its bytes")
    except IndexError:
        raise InvalidBatch("a record is cut off") from None
    if position != size:
        raise InvalidBatch(f"{size - position} bytes are left after {count} records")


def records_without_key(data: bytes | memoryview, count: int) -> list[int]:
    """The indexes of records whose key is null. `walk` must have accepted the records."""
    if len(data) <= copied_bytes_max:
        data = bytes(data)
    found = []
    position = 0
    for index in range(count):
        length = data[position]
        start = position + 1
        if length > 0x7F:
            length, start = _read_zigzag(data, position)
        position = start + (length >> 1)
        # Behind the attributes: the timestamp, the offset, then the length of the key. Odd means negative: null.
        inside = start + 1
        while data[inside] > 0x7F:
            inside += 1
        inside += 1
        while data[inside] > 0x7F:
            inside += 1
        if data[inside + 1] & 1:
            found.append(index)
    return found


def _skip_headers(data: bytes | memoryview, position: int, end: int) -> int:
    count, position = read_varint(data, position)
    if not 0 <= 2 * count <= end - position:
        raise InvalidBatch(f"a record claims {count} headers and {end - position} bytes are left")
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise InvalidBatch("a header without a key")
        length, position = read_varint(data, position + length)
        position += max(length, 0)
        if position > end:
            raise InvalidBatch("a header goes beyond its record")
    return position


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint and the position after it."""
    value, position = _read_zigzag(data, position)
    return (value >> 1) ^ -(value & 1), position


def _read_zigzag(data: bytes | memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        try:
            byte = data[position]
        except IndexError:
            raise InvalidBatch("a record is cut off") from None
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise InvalidBatch(f"a number in a record is longer than {varint_bytes_max} bytes")
