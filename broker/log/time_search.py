"""Lookups by timestamp in the visible part of a log, with bounded work.

A batch header contains the largest timestamp, but not the offset of its record. The timestamp in the header may also be
wrong. A lookup has to decompress the batch and read its records. If a batch is too large or invalid, or several headers
were wrong, the result is the batch's first offset. A consumer that seeks to it reads a few extra records but misses
none.

Without `wait`, a lookup raises ColdRead if it would wait for the disk. With `searched`, it raises UnsearchedBatch for a
large batch. The caller lets a thread do the work and repeats the lookup.
"""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.broker.log.files import LogFile
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import BatchHeader
from headgate.wire.records import read_records

if TYPE_CHECKING:
    from headgate.broker.log.partition_log import PartitionLog
    from headgate.broker.log.segment import Segment

# Typical batches decompress to a few MiB and contain about ten thousand records.
inflated_bytes_max = 16 * 1024 * 1024
searched_records_max = 50_000

# Batches to search in vain because of a wrong header, before the search accepts the next header unchecked.
misleading_batches_max = 4


# Limits for a search on the event loop. It takes a few milliseconds.
inline_bytes_max = 256 * 1024
inline_records_max = 1_000

# Searches in threads per lookup. Deletions in the meantime can lead to other batches.
searches_max = 16

Found: TypeAlias = tuple[int, int] | None
"""(offset, timestamp) of a record."""


class BatchSearch(NamedTuple):
    """The search for the first record at or after both `timestamp` and `offset_min` in one batch."""

    file: LogFile
    position: int
    header: BatchHeader
    timestamp: int
    offset_min: int

    def run(self) -> Found:
        """Search with the limits of a thread. If the batch cannot be read, returns its first offset."""
        try:
            return first_at(self._batch(), self.header, self.timestamp, self.offset_min)
        except OSError:
            return batch_as_a_whole(self.header, self.offset_min)

    def run_inline(self) -> Found:
        """Search with the limits of the event loop. Raises InvalidBatch if the batch is too large or invalid."""
        if self.header.records_count > inline_records_max or self.header.size_bytes > inline_bytes_max:
            raise InvalidBatch("the batch is too large for the event loop")
        return _first_record(self._batch(), self.timestamp, self.offset_min, inline_bytes_max)

    def _batch(self) -> bytes:
        return self.file.read(self.position, self.header.size_bytes)


Searched: TypeAlias = dict[BatchSearch, Found]
"""The results of the searches that a thread has done for one lookup."""


class UnsearchedBatch(Exception):
    """A search is too large for the event loop. The caller runs it in a thread and adds the result to `searched`."""

    def __init__(self, search: BatchSearch) -> None:
        super().__init__(f"the batch at offset {search.header.base_offset} is not searched yet")
        self.search = search


def _search(search: BatchSearch, searched: Searched | None) -> Found:
    """Search a batch. Raises UnsearchedBatch."""
    if searched is None:
        return search.run()
    if search in searched:
        return searched[search]
    if len(searched) >= searches_max:
        return batch_as_a_whole(search.header, search.offset_min)
    try:
        return search.run_inline()
    except InvalidBatch:
        raise UnsearchedBatch(search) from None


def find_timestamp(log: "PartitionLog", timestamp: int, *, wait: bool, searched: Searched | None = None) -> Found:
    """Return (offset, timestamp) of the first visible record at `timestamp` or later."""
    for number, segment in enumerate(log.segments):
        if number < len(log.segments) - 1:
            segment.load_times(wait=wait)
        if segment.largest_timestamp < timestamp:
            continue
        if not wait:
            segment.require_indexes()
        start = max(segment.base_offset + segment.time_index.before(timestamp), log.log_start_offset)
        misleading = 0
        for holder, position, header in log.batches_from(start, wait=wait):
            if header.base_offset >= log.high_watermark:
                return None
            if header.max_timestamp < timestamp:
                continue
            if misleading == misleading_batches_max:
                return batch_as_a_whole(header, log.log_start_offset)
            found = _search(BatchSearch(holder.file, position, header, timestamp, log.log_start_offset), searched)
            if found is not None:
                return found
            misleading += 1
        return None
    return None


def find_largest_timestamp(log: "PartitionLog", *, wait: bool, searched: Searched | None = None) -> Found:
    """Return (offset, timestamp) of the visible record with the largest timestamp."""
    best: tuple[int, int] | None = None
    for number, segment in enumerate(log.segments):
        if number < len(log.segments) - 1:
            segment.load_times(wait=wait)
        newest = segment.largest_timestamp, segment.largest_timestamp_offset
        if newest[1] >= log.high_watermark:
            newest = _newest_visible(log, segment, wait=wait)
        if best is None or newest[0] > best[0]:
            best = newest
    if best is None or best[0] < 0:
        return None
    for holder, position, header in log.batches_from(best[1], wait=wait):
        found = _search(BatchSearch(holder.file, position, header, best[0], log.log_start_offset), searched)
        return found if found is not None else batch_as_a_whole(header, log.log_start_offset)
    return None


def _newest_visible(log: "PartitionLog", segment: "Segment", *, wait: bool) -> tuple[int, int]:
    """Return (largest timestamp before the high watermark, base offset of its batch) of a segment with hidden batches.

    The time index covers all but the last few batches. The search reads only these batches.
    """
    if not wait:
        segment.require_indexes()
    timestamp, relative = segment.time_index.last_before(log.high_watermark - segment.base_offset)
    newest = timestamp, segment.base_offset + relative
    for holder, _, header in log.batches_from(newest[1], wait=wait):
        if holder is not segment or header.base_offset >= log.high_watermark:
            break
        if header.max_timestamp > newest[0]:
            newest = header.max_timestamp, header.base_offset
    return newest


def first_at(batch: bytes, header: BatchHeader, timestamp: int, offset_min: int) -> Found:
    """Return (offset, timestamp) of the first record at or after both `timestamp` and `offset_min`, or None.

    If the batch is too large or invalid, returns its first offset and largest timestamp.
    """
    if header.records_count > searched_records_max:
        return batch_as_a_whole(header, offset_min)
    try:
        return _first_record(batch, timestamp, offset_min, inflated_bytes_max)
    except InvalidBatch:
        return batch_as_a_whole(header, offset_min)


def _first_record(batch: bytes, timestamp: int, offset_min: int, bytes_max: int) -> Found:
    """Raises InvalidBatch if the batch is invalid or has more than `bytes_max` decompressed bytes."""
    for record in read_records(batch, bytes_max):
        if record.timestamp >= timestamp and record.offset >= offset_min:
            return record.offset, record.timestamp
    return None


def batch_as_a_whole(header: BatchHeader, offset_min: int) -> tuple[int, int]:
    return max(header.base_offset, offset_min), header.max_timestamp
