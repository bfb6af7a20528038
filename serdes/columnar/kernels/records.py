"""Reads the records of record batches (message format v2). Plain Python that Numba can compile.

`scan_records` checks all records and stores the positions of their fields; it copies no bytes. The other functions copy
fields from these positions. A corrupt batch is dropped: the next batch overwrites its rows.
"""

from typing import Final

from headgate.serdes.columnar.kernels.primitives import (
    Cells,
    append_bytes,
    is_utf8,
    jitable,
    jitable_apart,
    read_int,
    read_long,
)
from headgate.wire.records import RECORD_HEADER_BYTES_MIN

SECTION: Final = 7
"""Words of a section: start, end, base offset, last offset delta, base timestamp, log append time or CREATE_TIME,
number of records."""
CREATE_TIME: Final = -(2**63)
"""In place of the log append time: each record has its own timestamp."""
MAX_64: Final = 2**63 - 1


@jitable
def read_sized(data: Cells, pos: int, end: int) -> tuple[int, int]:
    """A length from -1 (null) to the number of bytes left, and the position after it. Position -1 if it is invalid."""
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


def scan_records(
    data: Cells,
    sections: Cells,
    first_offset: int,
    offsets: Cells,
    timestamps: Cells,
    timestamp_types: Cells,
    key_starts: Cells,
    key_ends: Cells,
    value_starts: Cells,
    value_ends: Cells,
    header_starts: Cells,
    header_lists: Cells,
    corrupt: Cells,
) -> int:
    """Store the positions of the records from `first_offset` on. Returns the number of rows.

    A null key or value ends one before its start. `header_lists` contains the number of headers before each row.
    `corrupt` is 1 for each malformed section.
    """
    row = 0
    header_lists[0] = 0
    for section in range(len(corrupt)):
        word = section * SECTION
        pos = sections[word]
        end = sections[word + 1]
        base_offset = sections[word + 2]
        last_delta = sections[word + 3]
        base_time = sections[word + 4]
        log_append_time = sections[word + 5]
        first_row = row
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
            if pos < 0 or count < 0 or count > (record_end - pos) // RECORD_HEADER_BYTES_MIN:
                break
            headers_at = pos
            if count > 0:
                pos = skip_headers(data, pos, record_end, count)
            if pos != record_end:
                break
            bad = False
            if base_offset + delta < first_offset:
                continue
            offsets[row] = base_offset + delta
            timestamps[row] = base_time + time_delta if log_append_time == CREATE_TIME else log_append_time
            timestamp_types[row] = log_append_time != CREATE_TIME
            key_starts[row] = key_at
            key_ends[row] = key_at + key_size
            value_starts[row] = value_at
            value_ends[row] = value_at + value_size
            header_starts[row] = headers_at
            header_lists[row + 1] = header_lists[row] + count
            row += 1
        if bad or pos != end:
            corrupt[section] = 1
            row = first_row
        else:
            corrupt[section] = 0
    return row


def copy_spans(data: Cells, starts: Cells, ends: Cells, offsets: Cells, valid: Cells, target: Cells) -> int:
    """Copy the bytes between starts and ends into one buffer. Returns their number."""
    at = 0
    offsets[0] = 0
    for row in range(len(starts)):
        size = ends[row] - starts[row]
        valid[row] = size >= 0
        size = max(size, 0)
        append_bytes(target, at, len(target), data, starts[row], size)
        at += size
        offsets[row + 1] = at
    return at


def find_headers(
    data: Cells,
    starts: Cells,
    lists: Cells,
    key_starts: Cells,
    key_ends: Cells,
    value_starts: Cells,
    value_ends: Cells,
) -> int:
    """Store the positions of the header keys and values of all rows. Returns the number of headers."""
    header = 0
    for row in range(len(starts)):
        pos = starts[row]
        for _ in range(lists[row + 1] - lists[row]):
            size, pos = read_sized(data, pos, len(data))
            key_starts[header] = pos
            pos += size
            key_ends[header] = pos
            size, pos = read_sized(data, pos, len(data))
            value_starts[header] = pos
            value_ends[header] = pos + size
            pos += max(size, 0)
            header += 1
    return header


def make_text(offsets: Cells, target: Cells) -> int:
    """Kafka's header keys are strings. In invalid UTF-8, replace each byte outside ASCII with a question mark.

    Returns the number of changed keys.
    """
    changed = 0
    for row in range(len(offsets) - 1):
        if not is_utf8(target, offsets[row], offsets[row + 1]):
            changed += 1
            for k in range(offsets[row], offsets[row + 1]):
                if target[k] >= 0x80:
                    target[k] = 63
    return changed
