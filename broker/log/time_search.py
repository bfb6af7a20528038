"""Which record of a batch is the first at a time: the last step of a lookup by time, bounded.

A batch's header says the largest timestamp inside, but not where. Looking costs inflating and walking it while
everybody waits, and the header may lie. So what is too much to look at, or is not there, is answered with the batch's
first offset: a consumer that seeks to it gets a few records more than it asked for, and misses none.
"""

from broker.protocol.record_batch import BatchHeader, records
from broker.protocol.record_walk import InvalidBatch

# Real batches are inflated to a few MiB and hold some ten thousand records.
inflated_bytes_max = 16 * 1024 * 1024
searched_records_max = 50_000

# Headers that lied, one after the other, before one is taken at its word.
misleading_batches_max = 4


def first_at(batch: bytes, header: BatchHeader, timestamp: int, offset_min: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at `timestamp` or later and `offset_min` or later, if there is one."""
    if header.records_count > searched_records_max:
        return batch_as_a_whole(header, offset_min)
    try:
        for record in records(batch, inflated_bytes_max):
            if record.timestamp >= timestamp and record.offset >= offset_min:
                return record.offset, record.timestamp
    except InvalidBatch:
        return batch_as_a_whole(header, offset_min)
    return None


def batch_as_a_whole(header: BatchHeader, offset_min: int) -> tuple[int, int]:
    return max(header.base_offset, offset_min), header.max_timestamp
