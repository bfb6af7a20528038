"""The records inside a batch, looked at without being read: are they as many as the header says, in order, and whole?

Runs for every small batch that is produced, so it is written for speed: records of one size, which is what most small
batches hold, are checked column by column in a few slices; others are walked with the short numbers read in place.

Layout: Kafka documentation, "Record".
"""

# A record needs a length, attributes, two deltas, two lengths and a header count: seven bytes at the least.
record_bytes_min = 7

# 64 bits, seven to a byte.
varint_bytes_max = 10

# Up to so many, walking each costs less than comparing columns.
walked_singly_max = 3

# Offset deltas of one byte each, as records that follow one another carry them.
_OFFSET_DELTAS = bytes(range(0, 128, 2))


class InvalidBatch(Exception):
    """A well-formed batch that breaks a rule: INVALID_RECORD."""


def walk(data: bytes, count: int) -> None:
    """Check that inflated records are `count`, in order, and fill their bytes. Raises InvalidBatch."""
    if count <= walked_singly_max or not _are_plain_and_alike(data, count):
        _walk_each(data, count)


def _are_plain_and_alike(data: bytes, count: int) -> bool:
    """Whether the records differ in nothing but their keys, values, offsets and small timestamp deltas.

    False says nothing: the records have to be walked.
    """
    stride, rest = divmod(len(data), count)
    if rest or stride < record_bytes_min or count > len(_OFFSET_DELTAS):
        return False
    length, inside = _short_number(data, 0)
    if length & 1 or inside + (length >> 1) != stride or stride < inside + 6:
        return False
    key_bytes, value_at = _short_number(data, inside + 3)
    if not key_bytes & 1:
        value_at += key_bytes >> 1
    if value_at + 2 > stride:
        return False
    value_bytes, end = _short_number(data, value_at)
    if not value_bytes & 1:
        end += value_bytes >> 1
    if end != stride - 1:
        return False
    same = {*range(inside), inside + 3, value_at}
    if data[inside + 3] > 0x7F:
        same.add(inside + 4)
    if data[value_at] > 0x7F:
        same.add(value_at + 1)
    for column in same:
        if data[column::stride] != data[column : column + 1] * count:
            return False
    return (
        data[inside + 2 :: stride] == _OFFSET_DELTAS[:count]
        and data[inside + 1 :: stride].isascii()
        and data[end::stride] == bytes(count)
    )


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
    length, inside = _short_number(data, position)
    stride = inside - position + (length >> 1)
    end = position + stride * count
    if length & 1 or inside > position + 2 or stride < record_bytes_min or end > len(data):
        return -1
    for column in range(position, inside):
        if bytes(data[column:end:stride]) != bytes(data[column : column + 1]) * count:
            return -1
    return end


def _short_number(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A number of one or two bytes, still zigzag, and the position behind it; one that fits nowhere if it is longer."""
    first, second = data[position], data[position + 1]
    if first < 0x80:
        return first, position + 1
    if second < 0x80:
        return first & 0x7F | second << 7, position + 2
    return 0, len(data)


def _walk_each(data: bytes, count: int) -> None:
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
            if inside < position and data[inside] == 0:
                inside += 1
            elif inside < position:
                inside = _skip_headers(data, inside, position)
            if inside != position:
                raise InvalidBatch(f"the fields of record {index} do not fill its bytes")
    except IndexError:
        raise InvalidBatch("a record is cut off") from None
    if position != size:
        raise InvalidBatch(f"{size - position} bytes are left after {count} records")


def _skip_headers(data: bytes, position: int, end: int) -> int:
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
