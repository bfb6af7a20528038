"""The records of Kafka's record batches (message format v2) into columns. Plain Python that Numba can compile.

As in `serdes.columnar.interpreter`, a batch that turns out corrupt is undone by not moving on. Headers that do not fit
their arrays are counted on, so that the caller knows at once how many there are.
"""

from typing import Final

from serdes.columnar.primitives import Cells, append_bytes, append_text, jitable, jitable_apart, read_int, read_long

SECTION: Final = 7
"""Words of a section: start, end, base offset, last offset delta, base timestamp, timestamp of all or OWN_TIMESTAMP
where each record has its own, number of records."""
OWN_TIMESTAMP: Final = -(2**63)
RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, two lengths of -1, no headers."""
HEADER_BYTES_MIN: Final = 2
MAX_64: Final = 2**63 - 1


@jitable
def read_sized(data: Cells, pos: int, end: int) -> tuple[int, int]:
    """A length of at least -1, which stands for null, and at most what is left; position -1 where it is neither."""
    size, pos = read_int(data, pos, end)
    if pos < 0 or size < -1 or size > end - pos:
        return 0, -1
    return size, pos


@jitable_apart
def skip_headers(data: Cells, pos: int, end: int, count: int) -> int:
    for _ in range(count):
        size, pos = read_sized(data, pos, end)
        if pos < 0 or size < 0:
            return -1
        size, pos = read_sized(data, pos + size, end)
        if pos < 0:
            return -1
        pos += max(size, 0)
    return pos


@jitable
def put_sized(data: Cells, pos: int, size: int, row: int, offsets: Cells, valid: Cells, target: Cells) -> None:
    at = offsets[row]
    valid[row] = size >= 0
    size = max(size, 0)
    append_bytes(target, at, len(target), data, pos, size)
    offsets[row + 1] = at + size


@jitable_apart
def put_header_key(data: Cells, pos: int, size: int, row: int, offsets: Cells, target: Cells) -> None:
    """Kafka's header keys are text. One that is not UTF-8 is kept, with a question mark for each byte beyond ASCII."""
    at = offsets[row]
    if not append_text(target, at, len(target), data, pos, size):
        for k in range(size):
            if data[pos + k] >= 0x80:
                target[at + k] = 63
    offsets[row + 1] = at + size


def decode_records(
    data: Cells,
    sections: Cells,
    first_offset: int,
    offsets: Cells,
    timestamps: Cells,
    timestamp_types: Cells,
    key_offsets: Cells,
    key_valid: Cells,
    keys: Cells,
    value_offsets: Cells,
    value_valid: Cells,
    values: Cells,
    header_lists: Cells,
    header_key_offsets: Cells,
    header_keys: Cells,
    header_value_offsets: Cells,
    header_value_valid: Cells,
    header_values: Cells,
    corrupt: Cells,
    totals: Cells,
) -> int:
    """Fill the columns with the records at `first_offset` and beyond; returns how many rows there are.

    `corrupt` gets 1 for a section that cannot be read. `totals[0]` gets the number of headers: where it is more than
    the arrays hold, the caller makes them larger and calls again.
    """
    room = len(header_value_valid)
    row = 0
    headers = 0
    for section in range(len(corrupt)):
        word = section * SECTION
        pos = sections[word]
        end = sections[word + 1]
        base_offset = sections[word + 2]
        last_delta = sections[word + 3]
        base_time = sections[word + 4]
        one_time = sections[word + 5]
        first_row = row
        first_header = headers
        bad = False
        for _ in range(sections[word + 6]):
            bad = True
            size, pos = read_sized(data, pos, end)
            if pos < 0 or size < 1:
                break
            record_end = pos + size
            time_delta, pos = read_long(data, pos + 1, record_end)
            if pos < 0:
                break
            if (base_time > 0 and time_delta > MAX_64 - base_time) or (
                base_time < 0 and time_delta < -MAX_64 - base_time
            ):
                break
            delta, pos = read_int(data, pos, record_end)
            if pos < 0 or delta < 0 or delta > last_delta:
                break
            key_size, key_at = read_sized(data, pos, record_end)
            if key_at < 0:
                break
            value_size, value_at = read_sized(data, key_at + max(key_size, 0), record_end)
            if value_at < 0:
                break
            count, pos = read_int(data, value_at + max(value_size, 0), record_end)
            if pos < 0 or count < 0 or count > (record_end - pos) // HEADER_BYTES_MIN:
                break
            bad = False
            if base_offset + delta < first_offset:
                pos = record_end
                continue
            if headers + count > room:
                headers += count
                if skip_headers(data, pos, record_end, count) != record_end:
                    bad = True
                    break
                pos = record_end
                continue
            for _ in range(count):
                bad = True
                size, pos = read_sized(data, pos, record_end)
                if pos < 0 or size < 0:
                    break
                name_at = pos
                name_size = size
                size, pos = read_sized(data, pos + size, record_end)
                if pos < 0:
                    break
                put_header_key(data, name_at, name_size, headers, header_key_offsets, header_keys)
                put_sized(data, pos, size, headers, header_value_offsets, header_value_valid, header_values)
                pos += max(size, 0)
                headers += 1
                bad = False
            if bad:
                break
            if pos != record_end:
                bad = True
                break
            offsets[row] = base_offset + delta
            timestamps[row] = base_time + time_delta if one_time == OWN_TIMESTAMP else one_time
            timestamp_types[row] = one_time != OWN_TIMESTAMP
            put_sized(data, key_at, key_size, row, key_offsets, key_valid, keys)
            put_sized(data, value_at, value_size, row, value_offsets, value_valid, values)
            header_lists[row + 1] = headers
            row += 1
        if bad or pos != end:
            corrupt[section] = 1
            row = first_row
            headers = first_header
        else:
            corrupt[section] = 0
    totals[0] = headers
    return row
