"""Sparse indexes of a segment: offset → position, and time → offset, in Kafka's own file formats.

An index is an aid, never a truth: it can be rebuilt from the segment, and an entry that does not lead to the batch it
names is a reason to rebuild. It stays in memory while its segment is written to and goes to disk when that is sealed,
checkpointed or closed.
"""

import struct
from bisect import bisect_right
from pathlib import Path

from broker.log.files import replace_file

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetIndex:
    """Pairs of (offset relative to the segment's base, position), both ascending."""

    __slots__ = ("entries",)

    def __init__(self, entries: bytes = b"") -> None:
        self.entries = bytearray(entries)

    def __len__(self) -> int:
        return len(self.entries) // 8

    def append(self, relative_offset: int, position: int) -> None:
        self.entries += _OFFSET_ENTRY.pack(relative_offset, position)

    def floor(self, relative_offset: int) -> tuple[int, int]:
        """The last entry at or before `relative_offset`; (0, 0), the segment's start, if there is none."""
        return self._floor(relative_offset, 0)

    def position_floor(self, position: int) -> int:
        """The last position at or before `position` that an entry leads to; 0 if there is none."""
        return self._floor(position, 1)[1]

    def _floor(self, value: int, part: int) -> tuple[int, int]:
        """By either part of the pairs, since both ascend."""
        entries, unpack = self.entries, _OFFSET_ENTRY.unpack_from
        after = bisect_right(range(len(entries) // 8), value, key=lambda number: unpack(entries, number * 8)[part])
        if after == 0:
            return 0, 0
        found: tuple[int, int] = unpack(entries, (after - 1) * 8)
        return found

    def last(self) -> tuple[int, int]:
        if not self.entries:
            return 0, 0
        found: tuple[int, int] = _OFFSET_ENTRY.unpack_from(self.entries, len(self.entries) - 8)
        return found

    def truncate(self, position: int) -> None:
        """Drop entries that lead to `position` or beyond."""
        while self.entries and self.last()[1] >= position:
            del self.entries[-8:]

    def is_sane(self, size_bytes: int) -> bool:
        """Whether it could belong to a segment of that size. Ascending order is what a search needs."""
        if len(self.entries) % 8:
            return False
        before = (-1, -1)
        for entry in _OFFSET_ENTRY.iter_unpack(self.entries):
            if entry[0] <= before[0] or entry[1] <= before[1] or entry[1] >= size_bytes:
                return False
            before = entry
        return True


class TimeIndex:
    """Pairs of (largest timestamp so far, relative offset of the batch that has it), both ascending."""

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
        """A relative offset from where on a search for `timestamp` cannot have missed it."""
        entries, unpack = self.entries, _TIME_ENTRY.unpack_from
        low, high = 0, len(entries) // 12
        while low < high:
            middle = (low + high) // 2
            if unpack(entries, middle * 12)[0] < timestamp:
                low = middle + 1
            else:
                high = middle
        return int(unpack(entries, (low - 1) * 12)[1]) if low else 0

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


def read_entries(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def write_entries(path: Path, entries: bytes) -> None:
    """Without an fsync: what a power cut takes away is rebuilt."""
    replace_file(path, entries, durable=False)
