"""One segment: a file of batches and its indexes, named after the base offset.

Appends go only to the last segment of a log. Files open on demand (`broker.log.open_files`). The first read verifies
the checksums of batches that another process wrote, so that the broker never serves bit rot.
"""

import errno
import logging
from pathlib import Path
from typing import TypeAlias

from crc32c import crc32c

from headgate.broker.log.files import LogFile, remove_file
from headgate.broker.log.index import OffsetIndex, TimeIndex, read_entries, require_cached, write_entries
from headgate.broker.log.index_rebuild import IndexRebuild
from headgate.broker.log.page_cache import ColdRead
from headgate.broker.log.region import Region
from headgate.broker.log.scan import chunk_bytes_max, scan
from headgate.broker.log.verified_ranges import VerifiedRanges
from headgate.broker.runtime.errors import StorageError
from headgate.wire.errors import CorruptBatch
from headgate.wire.record_batch import BOUNDS, HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, read_header

logger = logging.getLogger("headgate.broker.log")

# Read size when searching for the batch that contains an offset: one index interval and one header.
lookup_bytes = 4096 + HEADER_BYTES

# Limit on the bytes to verify per fetch, or one larger batch. Verification blocks the event loop.
verified_bytes_max = 1024 * 1024

_bounds = BOUNDS.unpack_from

IndexChecksums: TypeAlias = tuple[int, int] | None
"""CRC-32C of the offset index and of the time index on disk. None if they are unknown."""


class Segment:
    __slots__ = (
        "_file",
        "_index",
        "_is_discarded",
        "_rebuild",
        "_since_index_bytes",
        "_time_index",
        "_verified",
        "base_offset",
        "created_ms",
        "directory",
        "first_timestamp",
        "has_confirmed_times",
        "index_checksums",
        "is_damaged",
        "largest_timestamp",
        "largest_timestamp_offset",
        "own_from",
        "size_bytes",
    )

    def __init__(
        self, directory: Path, base_offset: int, created_ms: int, size_bytes: int = 0, file: LogFile | None = None
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size_bytes = size_bytes
        self.own_from = size_bytes
        """This process wrote or verified the bytes from this position on."""
        self.first_timestamp: int | None = None
        self.largest_timestamp = -1
        self.largest_timestamp_offset = base_offset
        self.has_confirmed_times = size_bytes == 0
        """The largest timestamp comes from batches with matching checksums. Retention by time requires this."""
        self.is_damaged = False
        """A batch is damaged. It may have had a larger timestamp than the known one."""
        self.index_checksums: IndexChecksums = None
        self._verified = VerifiedRanges()
        self._rebuild: IndexRebuild | None = None
        self._since_index_bytes = 0
        self._file = file
        self._is_discarded = False
        self._index: OffsetIndex | None = OffsetIndex() if size_bytes == 0 else None
        self._time_index: TimeIndex | None = TimeIndex() if size_bytes == 0 else None

    def path(self, suffix: str) -> Path:
        return self.directory / f"{self.base_offset:020d}.{suffix}"

    @property
    def file(self) -> LogFile:
        file = self._file
        if file is None:
            if self._is_discarded:
                raise StorageError(f"{self.path('log').name} was deleted", errno.ENOENT)
            file = self._file = LogFile(self.path("log"), is_new=self.size_bytes == 0)
        return file

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._load_indexes()
        assert self._index is not None
        return self._index

    @property
    def index_bytes(self) -> int:
        return self._index.size_bytes if self._index is not None else 0

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    def append(self, head: bytes, rest: memoryview, header: BatchHeader, base_offset: int, interval_bytes: int) -> None:
        """Write a batch that starts with `head`. The base offset in `header` is still the producer's."""
        position = self.size_bytes
        file = self._file or self.file
        size = file.write(position, head, rest)
        since = self._since_index_bytes
        if header.max_timestamp > self.largest_timestamp:
            self.largest_timestamp = header.max_timestamp
            self.largest_timestamp_offset = base_offset
        if since > interval_bytes and position:
            self.index.append(base_offset - self.base_offset, position)
            self.time_index.append(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)
            since = 0
        if self.first_timestamp is None:
            self.first_timestamp = header.max_timestamp
        self._since_index_bytes = since + size
        self.size_bytes = position + size

    def note(self, position: int, header: BatchHeader, interval_bytes: int) -> None:
        """Update the indexes and timestamps for a batch that a scan found, as `append` does for a new batch."""
        if header.max_timestamp > self.largest_timestamp:
            self.largest_timestamp = header.max_timestamp
            self.largest_timestamp_offset = header.base_offset
        if self._since_index_bytes > interval_bytes and position:
            self.index.append(header.base_offset - self.base_offset, position)
            self.time_index.append(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)
            self._since_index_bytes = 0
        if self.first_timestamp is None:
            self.first_timestamp = header.max_timestamp
        self._since_index_bytes += header.size_bytes

    def locate(self, offset: int, *, wait: bool = True) -> tuple[int, BatchHeader]:
        """Return the position and header of the first batch that ends at `offset` or later.

        Raises CorruptBatch if that batch is damaged, and LookupError if there is none. Without `wait`, raises ColdRead
        if a read would wait for the disk.
        """
        if not wait:
            self.require_indexes()
        relative, position = self.index.floor(offset - self.base_offset)
        chunk = self._lookup(position, wait=wait)
        if position and not _begins_with(chunk, self.base_offset + relative):
            self.rebuild_indexes(wait=wait)
            relative, position = self.index.floor(offset - self.base_offset)
            chunk = self._lookup(position, wait=wait)
        if position < self.own_from:
            if not wait:
                self.file.require_cached(position, min(chunk_bytes_max, self.size_bytes - position))
            return self._locate_checked(position, self.base_offset + relative, offset)
        chunk_start = position
        while position < self.size_bytes:
            inside = position - chunk_start
            if len(chunk) - inside < HEADER_BYTES:
                chunk, chunk_start, inside = self._lookup(position, wait=wait), position, 0
                if len(chunk) < HEADER_BYTES:
                    raise CorruptBatch(f"{self.path('log').name} is shorter than it was")
            base_offset, batch_length, last_offset_delta = _bounds(chunk, inside)
            if base_offset + last_offset_delta >= offset:
                return position, read_header(chunk, inside)
            position += batch_length + LOG_OVERHEAD_BYTES
        raise LookupError(offset)

    def _lookup(self, position: int, *, wait: bool) -> bytes | bytearray:
        if wait:
            return self.file.read(position, lookup_bytes)
        length = min(lookup_bytes, self.size_bytes - position)
        chunk = self.file.read_cached(position, length)
        if chunk is None:
            raise ColdRead(self.file, position, length)
        return chunk

    def entry_point(self, offset: int, *, wait: bool = True) -> tuple[int, int]:
        """Return (base offset, position) of the last indexed batch at or before `offset`. `wait` as in `locate`."""
        if not wait:
            self.require_indexes()
        relative, position = self.index.floor(max(offset - self.base_offset, 0))
        if position and not wait:
            self.file.require_cached(position, min(HEADER_BYTES, self.size_bytes - position))
        if position and not self.leads_to(position, self.base_offset + relative):
            self.rebuild_indexes(wait=wait)
            relative, position = self.index.floor(max(offset - self.base_offset, 0))
        return self.base_offset + relative, position

    def adopt_indexes(self, index: OffsetIndex, time_index: TimeIndex) -> None:
        self._index, self._time_index = index, time_index
        self._since_index_bytes = 0
        timestamp, relative = time_index.last()
        self.largest_timestamp, self.largest_timestamp_offset = timestamp, self.base_offset + relative

    def leads_to(self, position: int, base_offset: int) -> bool:
        """Whether the batch at `position` has this base offset."""
        return _begins_with(self.file.read(position, HEADER_BYTES), base_offset)

    def _locate_checked(self, position: int, next_offset: int, offset: int) -> tuple[int, BatchHeader]:
        """Like `locate`, for bytes that another process wrote. Accepts only batches with a matching checksum."""
        damaged = False
        for found in scan(self.file, position, self.size_bytes, next_offset, check=True):
            header = found.header
            if header is None:
                damaged = True
            elif header.last_offset >= offset:
                if header.base_offset > offset and damaged:
                    break
                return found.position, header
        if damaged:
            raise CorruptBatch(f"the batch with offset {offset} in {self.path('log').name} is damaged")
        raise LookupError(offset)

    def whole_batches(self, position: int, length: int, first: int, *, wait: bool = True) -> int:
        """Return the part of `length` that contains only complete batches. A batch of `first` bytes is at `position`.

        A client would discard a partial batch and fetch it again. The index gives a position near the end of the range.
        With the default index interval, one read from there covers the remaining headers. Without `wait`, raises
        ColdRead if that read would wait for the disk.
        """
        end = position + length
        if end >= self.size_bytes:
            return length
        start = max(self.index.position_floor(end), position + first)
        chunk = self._lookup(start, wait=wait)
        inside, last = 0, len(chunk) - HEADER_BYTES
        while inside <= last:
            size = _bounds(chunk, inside)[1] + LOG_OVERHEAD_BYTES
            if size < HEADER_BYTES:
                break
            if start + inside + size > end:
                return start + inside - position
            inside += size
        return length

    def region(self, position: int, length: int, base_offset: int, first: int, *, wait: bool = True) -> Region:
        """Return up to `length` bytes from `position`. The batch there has `base_offset` and a size of `first` bytes.

        Verifies bytes of another process first. One call verifies a limited amount, so the region may end early. Raises
        CorruptBatch if the first batch is damaged. Without `wait`, raises ColdRead if verification would wait for the
        disk.
        """
        length = min(length, self.size_bytes - position)
        if position < self.own_from:
            length = self._verify(position, length, base_offset, first, wait=wait)
        return Region(self.file, position, length)

    def _verify(self, position: int, length: int, base_offset: int, first: int, *, wait: bool) -> int:
        """Verify the batches of a range once. Returns the length up to the first damaged batch or the limit."""
        verified_end = self._verified.end_at(position)
        if verified_end is not None:
            return length if verified_end >= min(position + length, self.own_from) else verified_end - position
        wanted = min(position + length, self.own_from)
        end = min(position + max(first, verified_bytes_max), wanted)
        if not wait:
            self.file.require_cached(position, end - position)
        done = position
        for found in scan(self.file, position, self.own_from, base_offset, check=True):
            if found.header is None:
                if found.position == position:
                    raise CorruptBatch(f"the batch at {position} in {self.path('log').name} is damaged")
                break
            done = found.end
            if done >= end:
                break
        self._verified.add(position, done)
        return length if done >= wanted else done - position

    def rebuild_indexes(self, *, wait: bool = True) -> None:
        """Rebuild the indexes. Without `wait`, raises ColdRead: the next call uses the result of the thread."""
        rebuild, self._rebuild = self._rebuild, None
        if wait:
            self.scan_indexes()
        else:
            if rebuild is None or rebuild.is_outdated:
                rebuild = IndexRebuild(self)
            if not rebuild.is_done:
                self._rebuild = rebuild
                raise ColdRead(self.file, 0, 0, rebuild.run)
            rebuild.apply()
        try:
            self.write_indexes()
        except StorageError as error:
            if not error.recoverable:
                raise
            logger.warning("%s: the rebuilt indexes are not stored: %s", self.directory.name, error)

    def scan_indexes(self) -> None:
        """Read the indexes from the batches with matching checksums."""
        self._index, self._time_index = OffsetIndex(), TimeIndex()
        self._since_index_bytes = 0
        self.largest_timestamp, self.largest_timestamp_offset = -1, self.base_offset
        self.is_damaged = False
        for found in scan(self.file, 0, self.size_bytes, self.base_offset, check=True):
            if found.header is not None:
                self.note(found.position, found.header, lookup_bytes - HEADER_BYTES)
            else:
                self.is_damaged = True
        self.has_confirmed_times = True

    def read_indexes(self) -> tuple[OffsetIndex, TimeIndex] | None:
        """Return the indexes on disk, or None if they are missing or damaged."""
        offsets, times = read_entries(self.path("index")), read_entries(self.path("timeindex"))
        if offsets is None or times is None:
            return None
        if self.index_checksums is not None and self.index_checksums != (crc32c(offsets), crc32c(times)):
            return None
        index, time_index = OffsetIndex.read(offsets, self.size_bytes), TimeIndex(times)
        return (index, time_index) if index is not None and time_index.is_sane() else None

    def _load_indexes(self, *, wait: bool = True) -> None:
        found = self.read_indexes()
        if found is None:
            self.rebuild_indexes(wait=wait)
        else:
            self._index, self._time_index = found

    def require_indexes(self) -> None:
        """Load the indexes. Raises ColdRead if this would wait for the disk or if they must be rebuilt."""
        if self._index is None:
            require_cached(self.path("index"), self.path("timeindex"))
            self._load_indexes(wait=False)

    def load_times(self, *, wait: bool = True) -> None:
        """Load the largest timestamp of a sealed segment from its time index, for retention and lookups."""
        if self.largest_timestamp < 0 and self.size_bytes:
            if not wait:
                self.require_indexes()
            timestamp, relative = self.time_index.last()
            if timestamp >= 0:
                self.largest_timestamp, self.largest_timestamp_offset = timestamp, self.base_offset + relative
            elif not self.has_confirmed_times:
                self.rebuild_indexes(wait=wait)

    def write_indexes(self) -> None:
        if self._index is None or self._time_index is None:
            return
        if self.largest_timestamp >= 0:
            self._time_index.append(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)
        offsets, times = self._index.to_bytes(), bytes(self._time_index.entries)
        self.index_checksums = None
        write_entries(self.path("index"), offsets)
        write_entries(self.path("timeindex"), times)
        self.index_checksums = crc32c(offsets), crc32c(times)

    def truncate(self, position: int, next_offset: int) -> None:
        self.cut(position, next_offset)
        self.file.sync()

    def cut(self, position: int, next_offset: int) -> None:
        """Truncate without an fsync."""
        self.file.truncate(position)
        self.size_bytes = position
        self.own_from = min(self.own_from, position)
        self.index.truncate(position)
        self.time_index.truncate(next_offset - self.base_offset)

    def forget(self) -> None:
        """Drop the indexes from memory and close the file. The next use loads them again.

        A file with unsynced writes stays open: closing it would wait for the disk.
        """
        self._index = self._time_index = None
        if self._file is not None and not self._file.is_dirty:
            self._file.release()

    def close(self) -> None:
        self._index = self._time_index = None
        if self._file is not None:
            self._file.release()

    def discard(self) -> None:
        """Never open the files again. Call this after they are removed or moved.

        The log file closes when the last reader has finished.
        """
        self._index = self._time_index = None
        self._is_discarded = True
        if self._file is not None:
            self._file.discard()
            self._file = None

    def remove(self) -> None:
        for suffix in ("log", "index", "timeindex", "snapshot"):
            remove_file(self.path(suffix))
        self.discard()


def _begins_with(chunk: bytes | bytearray, base_offset: int) -> bool:
    return len(chunk) >= HEADER_BYTES and _bounds(chunk)[0] == base_offset
