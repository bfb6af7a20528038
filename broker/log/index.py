"""Sparse indexes of a segment: offset → position, and timestamp → offset, in Kafka's file formats.

The segment is the source of truth, and an index can be rebuilt from it. An entry that does not lead to its batch
triggers a rebuild. The index of the active segment stays in memory. The broker writes it to disk when it seals,
checkpoints or closes the segment.
"""

import os
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from pathlib import Path
from typing import Self

from headgate.broker.log.files import read_file, replace_file
from headgate.broker.log.open_files import Descriptor, open_files
from headgate.broker.log.page_cache import ColdRead, cached_bytes

OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = struct.Struct(">qi")


class OffsetIndex:
    """Pairs of (offset relative to the segment's base, position), both ascending.

    Each part is a separate array in memory, so that `bisect` searches it in C.
    """

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("i")
        self._positions = array("i")

    @classmethod
    def read(cls, entries: bytes, size_bytes: int) -> Self | None:
        """Decode the entries. Returns None if they are not ascending or do not fit a segment of `size_bytes`."""
        if len(entries) % OFFSET_ENTRY_BYTES:
            return None
        both = array("i", entries)
        if sys.byteorder == "little":
            both.byteswap()
        index = cls()
        index._offsets, index._positions = both[::2], both[1::2]
        if not both or (
            both[0] >= 0
            and both[1] >= 0
            and both[-1] < size_bytes
            and all(map(lt, index._offsets, index._offsets[1:]))
            and all(map(lt, index._positions, index._positions[1:]))
        ):
            return index
        return None

    def to_bytes(self) -> bytes:
        both = array("i", bytes(self.size_bytes))
        both[::2], both[1::2] = self._offsets, self._positions
        if sys.byteorder == "little":
            both.byteswap()
        return both.tobytes()

    @property
    def size_bytes(self) -> int:
        return len(self._offsets) * OFFSET_ENTRY_BYTES

    def append(self, relative_offset: int, position: int) -> None:
        self._offsets.append(relative_offset)
        self._positions.append(position)

    def floor(self, relative_offset: int) -> tuple[int, int]:
        """Return the last entry at or before `relative_offset`, or (0, 0), the segment's start, if there is none."""
        after = bisect_right(self._offsets, relative_offset)
        return (self._offsets[after - 1], self._positions[after - 1]) if after else (0, 0)

    def position_floor(self, position: int) -> int:
        """Return the last indexed position at or before `position`, or 0 if there is none."""
        after = bisect_right(self._positions, position)
        return self._positions[after - 1] if after else 0

    def last(self) -> tuple[int, int]:
        return (self._offsets[-1], self._positions[-1]) if self._offsets else (0, 0)

    def truncate(self, position: int) -> None:
        """Drop the entries with a position of at least `position`."""
        self._keep(bisect_left(self._positions, position))

    def truncate_offsets(self, relative_offset: int) -> None:
        """Drop the entries with an offset of at least `relative_offset`."""
        self._keep(bisect_left(self._offsets, relative_offset))

    def _keep(self, count: int) -> None:
        del self._offsets[count:]
        del self._positions[count:]


class TimeIndex:
    """Pairs of (largest timestamp so far, relative offset of the batch with that timestamp), both ascending."""

    __slots__ = ("entries",)

    def __init__(self, entries: bytes = b"") -> None:
        self.entries = bytearray(entries)

    def append(self, timestamp: int, relative_offset: int) -> None:
        if not self.entries or timestamp > self.last()[0]:
            self.entries += _TIME_ENTRY.pack(timestamp, relative_offset)

    def last(self) -> tuple[int, int]:
        if not self.entries:
            return -1, 0
        found: tuple[int, int] = _TIME_ENTRY.unpack_from(self.entries, len(self.entries) - 12)
        return found

    def before(self, timestamp: int) -> int:
        """Return a relative offset at or before the first batch that reaches `timestamp`. Start a search there."""
        entries, unpack = self.entries, _TIME_ENTRY.unpack_from
        low, high = 0, len(entries) // 12
        while low < high:
            middle = (low + high) // 2
            if unpack(entries, middle * 12)[0] < timestamp:
                low = middle + 1
            else:
                high = middle
        return int(unpack(entries, (low - 1) * 12)[1]) if low else 0

    def last_before(self, relative_offset: int) -> tuple[int, int]:
        """Return the last entry before `relative_offset`, or (-1, 0) if there is none."""
        for start in reversed(range(0, len(self.entries), 12)):
            found: tuple[int, int] = _TIME_ENTRY.unpack_from(self.entries, start)
            if found[1] < relative_offset:
                return found
        return -1, 0

    def truncate(self, relative_offset: int) -> None:
        while self.entries and self.last()[1] >= relative_offset:
            del self.entries[-12:]

    def is_sane(self) -> bool:
        if len(self.entries) % 12:
            return False
        before = (-2, -1)
        for entry in _TIME_ENTRY.iter_unpack(self.entries):
            if entry[0] <= before[0] or entry[1] < before[1]:
                return False
            before = entry
        return True


class _IndexFile:
    """An index file on disk. A cold-read thread reads it into the page cache."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def descriptor(self) -> Descriptor:
        return Descriptor(open_files.open(self._path, os.O_RDONLY))


def require_cached(*paths: Path) -> None:
    """Raise ColdRead if a read of the index files would wait for the disk."""
    for path in paths:
        file = _IndexFile(path)
        try:
            descriptor = file.descriptor()
            size = os.fstat(descriptor.number).st_size
        except OSError:
            # The later read reports the error. A missing index is rebuilt.
            continue
        if cached_bytes(descriptor, 0, size) < size:
            raise ColdRead(file, 0, size)


def read_entries(path: Path) -> bytes | None:
    return read_file(path)


def write_entries(path: Path, entries: bytes) -> None:
    """Write an index file without an fsync. An index lost in a power cut is rebuilt."""
    replace_file(path, entries, durable=False)
