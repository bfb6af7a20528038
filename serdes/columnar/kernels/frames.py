"""Parses the five bytes before a body (magic byte 0, schema id) of all rows, and collects the distinct ids.

The decoder then looks up each id once. In corrupt data, each row can have another id.
"""

from typing import Final

from headgate.serdes.columnar.kernels.primitives import Cells
from headgate.serdes.outcome import Reason

FRAME_BYTES: Final = 5
NULL: Final = int(Reason.NULL)
TOO_SHORT: Final = int(Reason.TOO_SHORT)
BAD_MAGIC: Final = int(Reason.BAD_MAGIC)


def scan_frames(
    data: Cells, starts: Cells, ends: Cells, present: Cells, ids: Cells, slots: Cells, table: Cells, distinct: Cells
) -> int:
    """Fill `ids` and `slots`. A slot is the row's position in `distinct`, or minus its reason.

    `table` is a hash table: a power of two larger than `distinct`, filled with -1. Returns the number of distinct ids,
    or -1 if `distinct` is full.
    """
    mask = len(table) - 1
    has_nulls = len(present) > 0
    count = 0
    last_id = 0
    last_slot = -1
    for row in range(len(ids)):
        start = starts[row]
        ids[row] = 0
        if has_nulls and not present[row]:
            slots[row] = -NULL
            continue
        if ends[row] - start < FRAME_BYTES:
            slots[row] = -TOO_SHORT
            continue
        if data[start] != 0:
            slots[row] = -BAD_MAGIC
            continue
        schema_id = (data[start + 1] << 24) | (data[start + 2] << 16) | (data[start + 3] << 8) | data[start + 4]
        ids[row] = schema_id
        if schema_id == last_id and last_slot >= 0:
            slots[row] = last_slot
            continue
        # The odd factor distributes ids that differ only in their high bits.
        place = (schema_id * 40503 ^ (schema_id >> 15)) & mask
        while table[place] >= 0 and distinct[table[place]] != schema_id:
            place = (place + 1) & mask
        if table[place] < 0:
            if count == len(distinct):
                return -1
            table[place] = count
            distinct[count] = schema_id
            count += 1
        last_id = schema_id
        last_slot = table[place]
        slots[row] = last_slot
    return count
