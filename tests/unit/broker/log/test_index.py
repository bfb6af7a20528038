"""The offset index: a search over ascending pairs, in the file format of Kafka's tools."""

import struct

import pytest

from headgate.broker.log.index import OffsetIndex

ENTRIES = [(5, 100), (9, 260), (40, 4000)]
SEGMENT_BYTES = 5000


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def an_index() -> OffsetIndex:
    index = OffsetIndex()
    for entry in ENTRIES:
        index.append(*entry)
    return index


def test_the_file_contains_kafkas_pairs_of_32_bits() -> None:
    index = an_index()
    assert index.to_bytes() == packed(*ENTRIES)
    assert index.size_bytes == len(index.to_bytes())


def test_written_entries_are_read_back() -> None:
    index = OffsetIndex.read(packed(*ENTRIES), SEGMENT_BYTES)
    assert index is not None
    assert index.to_bytes() == packed(*ENTRIES)
    assert OffsetIndex.read(b"", 0) is not None


@pytest.mark.parametrize(
    "entries",
    [
        packed(*ENTRIES)[:-1],
        packed((9, 100), (5, 260)),
        packed((5, 260), (9, 100)),
        packed((5, 100), (5, 260)),
        packed((5, 100), (9, 100)),
        packed((-1, 100)),
        packed((5, -100)),
        packed((5, SEGMENT_BYTES)),
        bytes(16),
    ],
)
def test_entries_that_cannot_be_of_the_segment_are_refused(entries: bytes) -> None:
    assert OffsetIndex.read(entries, SEGMENT_BYTES) is None


@pytest.mark.parametrize(
    ("offset", "found"), [(0, (0, 0)), (4, (0, 0)), (5, (5, 100)), (8, (5, 100)), (9, (9, 260)), (99, (40, 4000))]
)
def test_floor_is_the_last_entry_at_or_before_the_offset(offset: int, found: tuple[int, int]) -> None:
    assert an_index().floor(offset) == found
    assert OffsetIndex().floor(offset) == (0, 0)


@pytest.mark.parametrize(("position", "found"), [(0, 0), (99, 0), (100, 100), (259, 100), (4999, 4000)])
def test_position_floor_is_the_last_position_an_entry_leads_to(position: int, found: int) -> None:
    assert an_index().position_floor(position) == found


def test_truncation_drops_later_entries() -> None:
    by_position, by_offset = an_index(), an_index()
    by_position.truncate(260)
    by_offset.truncate_offsets(10)
    assert by_position.last() == (5, 100)
    assert by_offset.last() == (9, 260)
    by_offset.truncate_offsets(-1)
    assert by_offset.last() == (0, 0)
