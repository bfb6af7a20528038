"""The time index: a search over ascending pairs of timestamp and relative offset."""

import struct
from pathlib import Path

import pytest

from headgate.broker.log.index import OffsetIndex, TimeIndex, read_entries, require_cached, write_entries

ENTRIES = [(1000, 0), (1500, 3), (1501, 40)]


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def an_index() -> TimeIndex:
    return TimeIndex(packed(*ENTRIES))


def test_an_entry_is_a_timestamp_of_64_bits_and_an_offset_of_32() -> None:
    index = TimeIndex()
    for entry in ENTRIES:
        index.append(*entry)
    assert bytes(index.entries) == packed(*ENTRIES)
    assert index.last() == (1501, 40)


def test_an_empty_index_has_no_timestamp() -> None:
    index = TimeIndex()
    assert index.last() == (-1, 0)
    assert index.before(5) == 0
    assert index.last_before(5) == (-1, 0)
    assert index.is_sane()
    index.truncate(0)
    assert index.entries == b""


@pytest.mark.parametrize(("timestamp", "is_added"), [(1500, False), (1501, False), (1502, True)])
def test_only_a_larger_timestamp_is_added(timestamp: int, is_added: bool) -> None:
    index = an_index()
    index.append(timestamp, 41)
    assert bytes(index.entries) == packed(*ENTRIES, *([(timestamp, 41)] if is_added else []))


def test_the_first_entry_may_have_any_timestamp() -> None:
    index = TimeIndex()
    index.append(-1, 0)
    assert bytes(index.entries) == packed((-1, 0))


@pytest.mark.parametrize(
    ("timestamp", "relative"), [(0, 0), (999, 0), (1000, 0), (1001, 0), (1500, 0), (1501, 3), (1502, 40), (9999, 40)]
)
def test_a_search_starts_at_the_last_entry_before_the_timestamp(timestamp: int, relative: int) -> None:
    assert an_index().before(timestamp) == relative


@pytest.mark.parametrize("count", range(1, 9))
def test_a_search_finds_every_entry(count: int) -> None:
    index = TimeIndex(packed(*((10 * number, number) for number in range(count))))
    for number in range(count):
        assert index.before(10 * number + 1) == number
        assert index.before(10 * number) == max(number - 1, 0)


@pytest.mark.parametrize(
    ("relative", "found"),
    [(0, (-1, 0)), (1, (1000, 0)), (3, (1000, 0)), (4, (1500, 3)), (40, (1500, 3)), (41, (1501, 40))],
)
def test_the_last_entry_before_an_offset(relative: int, found: tuple[int, int]) -> None:
    assert an_index().last_before(relative) == found


@pytest.mark.parametrize(("relative", "left"), [(41, 3), (40, 2), (4, 2), (3, 1), (1, 1), (0, 0)])
def test_truncation_drops_the_entries_from_the_offset_on(relative: int, left: int) -> None:
    index = an_index()
    index.truncate(relative)
    assert bytes(index.entries) == packed(*ENTRIES[:left])


@pytest.mark.parametrize(
    ("entries", "is_sane"),
    [
        (packed(*ENTRIES), True),
        (packed((-1, 0)), True),
        (packed((5, 3), (6, 3)), True),
        (packed(*ENTRIES) + b"\0", False),
        (packed(*ENTRIES)[:-1], False),
        (packed((-2, 0)), False),
        (packed((5, -1)), True),
        (packed((5, -2)), False),
        (packed((5, 3), (5, 4)), False),
        (packed((5, 3), (4, 4)), False),
        (packed((5, 3), (6, 2)), False),
    ],
)
def test_entries_out_of_order_are_not_sane(entries: bytes, is_sane: bool) -> None:
    assert TimeIndex(entries).is_sane() is is_sane


@pytest.mark.parametrize(
    ("entry", "is_accepted"),
    [((0, 0), True), ((0, 4), True), ((5, 99), True), ((5, 100), False), ((-1, 0), False), ((0, -1), False)],
)
def test_entries_of_the_offset_index_are_inside_the_segment(entry: tuple[int, int], is_accepted: bool) -> None:
    assert (OffsetIndex.read(struct.pack(">ii", *entry), 100) is not None) is is_accepted


@pytest.mark.parametrize(("offset", "last"), [(5, (0, 0)), (6, (5, 100)), (9, (5, 100)), (10, (9, 260))])
def test_the_offset_index_is_truncated_by_offset(offset: int, last: tuple[int, int]) -> None:
    index = OffsetIndex()
    index.append(5, 100)
    index.append(9, 260)
    index.truncate_offsets(offset)
    assert index.last() == last


@pytest.mark.parametrize(("position", "last"), [(100, (0, 0)), (101, (5, 100)), (260, (5, 100)), (261, (9, 260))])
def test_the_offset_index_is_truncated_by_position(position: int, last: tuple[int, int]) -> None:
    index = OffsetIndex()
    index.append(5, 100)
    index.append(9, 260)
    index.truncate(position)
    assert index.last() == last
    assert index.size_bytes == (8 if last == (5, 100) else 16 if last[0] else 0)


def test_index_files_hold_the_entries(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    assert read_entries(path) is None
    require_cached(path)
    write_entries(path, packed(*ENTRIES))
    assert read_entries(path) == path.read_bytes() == packed(*ENTRIES)
    require_cached(path)
    assert [file.name for file in tmp_path.iterdir()] == ["0.index"]
