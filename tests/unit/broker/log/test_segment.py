"""One segment: index entries, lookups by offset, verification of batches that another process wrote, rolls."""

import struct
from pathlib import Path

import pytest

from headgate.broker.log import index, segment
from headgate.broker.log.index import OffsetIndex
from headgate.broker.log.page_cache import ColdRead
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.segment import Segment
from headgate.broker.log.verified_ranges import VerifiedRanges
from headgate.broker.runtime.errors import StorageError
from headgate.wire.errors import CorruptBatch
from tests.unit.broker.log.logs import KILLED, NOW_MS, append, fill, numbered, open_at, stamped
from tests.wire.record_batches import Batch, NewRecord

CRC_AT = 17
BATCH = numbered(0)
SIZE = len(BATCH)


def entries(one: Segment) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return (relative offset, position) of the offset index and (timestamp, relative offset) of the time index."""
    return (
        list(struct.iter_unpack(">ii", one.index.to_bytes())),
        list(struct.iter_unpack(">qi", one.time_index.entries)),
    )


def damage(one: Segment, position: int) -> None:
    with one.path("log").open("r+b") as file:
        file.seek(position + CRC_AT)
        file.write(bytes(4))


@pytest.mark.parametrize(("interval", "every"), [(0, 1), (SIZE - 1, 1), (SIZE, 2), (2 * SIZE - 1, 2), (2 * SIZE, 3)])
def test_an_entry_follows_more_bytes_than_the_interval(tmp_path: Path, interval: int, every: int) -> None:
    log = open_at(tmp_path, index_interval_bytes=str(interval))
    for _ in range(10):
        append(log, numbered(log.log_end_offset))
    offsets, times = entries(log.segments[0])
    assert offsets == [(number, number * SIZE) for number in range(every, 10, every)]
    assert times == [(NOW_MS + number, number) for number in range(every, 10, every)]
    # Recovery reads the same entries from the batches.
    recovered = open_at(tmp_path, KILLED, index_interval_bytes=str(interval))
    assert entries(recovered.segments[0]) == (offsets, times)
    # A rebuild uses the default interval.
    recovered.segments[0].scan_indexes()
    assert entries(recovered.segments[0]) == ([], [])


def test_rebuilt_indexes_have_the_default_interval(tmp_path: Path) -> None:
    log = open_at(tmp_path, index_interval_bytes="1000000")
    for _ in range(200):
        append(log, numbered(0))
    one = log.segments[0]
    assert entries(one) == ([], [])
    one.rebuild_indexes()
    every = 4096 // SIZE + 1
    assert entries(one)[0] == [(number, number * SIZE) for number in range(every, 200, every)]


def test_a_time_entry_has_the_batch_with_the_largest_timestamp(tmp_path: Path) -> None:
    log = open_at(tmp_path, index_interval_bytes="0")
    for timestamp in (5, 9, 9, 3, 10):
        append(log, stamped(timestamp))
    one = log.segments[0]
    assert entries(one)[1] == [(9, 1), (10, 4)]
    assert (one.first_timestamp, one.largest_timestamp, one.largest_timestamp_offset) == (5, 10, 4)
    recovered = open_at(tmp_path, KILLED, index_interval_bytes="0").segments[0]
    assert entries(recovered)[1] == [(9, 1), (10, 4)]
    assert recovered.first_timestamp == 5
    assert (recovered.largest_timestamp, recovered.largest_timestamp_offset) == (10, 4)


@pytest.mark.parametrize("interval", ["0", "500", "1000000"])
@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("wait", [True, False])
def test_every_offset_leads_to_its_batch(tmp_path: Path, interval: str, is_own: bool, wait: bool) -> None:
    log = open_at(tmp_path, index_interval_bytes=interval)
    fill(log, 60)
    append(log, Batch([NewRecord(bytes(5000))]).encode())
    fill(log, 60)
    positions = {header.base_offset: position for _, position, header in log.batches_from(0)}
    assert len(positions) == 121
    if not is_own:
        log.close()
        log = open_at(tmp_path, index_interval_bytes=interval)
    for offset in range(log.log_end_offset):
        position, header = log.segments[0].locate(offset, wait=wait)
        assert header.base_offset <= offset <= header.last_offset
        assert positions[header.base_offset] == position
    with pytest.raises(LookupError):
        log.segments[0].locate(log.log_end_offset, wait=wait)


def test_a_file_that_became_shorter_is_corrupt(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 200)
    one = log.segments[0]
    one.file.truncate(one.size_bytes // 2 + 30)
    with pytest.raises(CorruptBatch, match="shorter than it was"):
        one.locate(log.log_end_offset - 1)


def reopened(tmp_path: Path, batches: int = 10) -> PartitionLog:
    """A log whose batches another process wrote."""
    log = open_at(tmp_path, index_interval_bytes="0")
    for _ in range(batches):
        append(log, numbered(log.log_end_offset))
    log.close()
    log = open_at(tmp_path, index_interval_bytes="0")
    # Recovery verifies the last batch.
    assert log.segments[0].own_from == (batches - 1) * SIZE
    return log


@pytest.mark.parametrize(
    ("limit", "length", "expected"),
    [
        (1, 5 * SIZE, SIZE),
        (SIZE, 5 * SIZE, SIZE),
        (SIZE + 1, 5 * SIZE, 2 * SIZE),
        (3 * SIZE, 5 * SIZE, 3 * SIZE),
        (100 * SIZE, 5 * SIZE, 5 * SIZE),
        (100 * SIZE, 10 * SIZE, 10 * SIZE),
        # The range ends inside a batch that this process wrote.
        (100 * SIZE, 9 * SIZE + 5, 9 * SIZE + 5),
        (8 * SIZE, 10 * SIZE, 8 * SIZE),
    ],
)
@pytest.mark.parametrize("wait", [True, False])
def test_one_read_verifies_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, length: int, expected: int, wait: bool
) -> None:
    monkeypatch.setattr(segment, "verified_bytes_max", limit)
    one = reopened(tmp_path).segments[0]
    for _ in range(2):
        # The second read uses the result of the first one.
        region = one.region(0, length, 0, SIZE, wait=wait)
        assert (region.position, region.length) == (0, expected)


def test_a_read_ends_before_a_damaged_batch(tmp_path: Path) -> None:
    one = reopened(tmp_path).segments[0]
    damage(one, 3 * SIZE)
    assert one.region(0, 10 * SIZE, 0, SIZE).length == 3 * SIZE
    assert one.region(0, 2 * SIZE, 0, SIZE).length == 2 * SIZE
    assert one.region(0, 10 * SIZE, 0, SIZE).length == 3 * SIZE
    with pytest.raises(CorruptBatch, match=f"the batch at {3 * SIZE}"):
        one.region(3 * SIZE, 10 * SIZE, 3, SIZE)
    assert one.region(4 * SIZE, 10 * SIZE, 4, SIZE).length == 6 * SIZE
    # This process wrote or verified the last batch, so it is not read again.
    damage(one, 9 * SIZE)
    assert one.region(9 * SIZE, SIZE, 9, SIZE).length == SIZE


@pytest.mark.parametrize(("offset", "found"), [(2, 2), (3, None), (4, 4)])
def test_a_damaged_batch_is_not_located(tmp_path: Path, offset: int, found: int | None) -> None:
    one = reopened(tmp_path).segments[0]
    one._index = OffsetIndex()
    damage(one, 3 * SIZE)
    if found is None:
        with pytest.raises(CorruptBatch, match="offset 3 in"):
            one.locate(offset)
    else:
        assert one.locate(offset)[0] == found * SIZE


def test_wrong_indexes_are_rebuilt(tmp_path: Path) -> None:
    log = reopened(tmp_path)
    one = log.segments[0]
    assert one.entry_point(5) == (5, 5 * SIZE)
    assert one.entry_point(-1) == (0, 0)
    wrong = OffsetIndex()
    wrong.append(4, 5 * SIZE)
    one._index = wrong
    assert one.entry_point(3) == (0, 0)
    assert one.locate(6)[0] == 6 * SIZE
    # The rebuilt index has no entries, because the segment is smaller than the default interval.
    assert entries(one)[0] == []
    one._index = wrong
    assert one.entry_point(6) == (0, 0)


@pytest.mark.parametrize("harm", ["missing index", "missing timeindex", "changed", "not ascending"])
def test_harmed_indexes_are_not_read(tmp_path: Path, harm: str) -> None:
    one = reopened(tmp_path).segments[0]
    assert one.read_indexes() is not None
    if harm == "not ascending":
        one.index_checksums = None
        one.path("timeindex").write_bytes(struct.pack(">qiqi", 5, 3, 4, 4))
    elif harm == "changed":
        content = bytearray(one.path("index").read_bytes())
        content[3] ^= 2
        one.path("index").write_bytes(content)
    else:
        one.path(harm.partition(" ")[2]).unlink()
    assert one.read_indexes() is None


def test_a_cut_drops_the_entries_behind_it(tmp_path: Path) -> None:
    log = open_at(tmp_path, index_interval_bytes="0")
    for _ in range(5):
        append(log, numbered(log.log_end_offset))
    one = log.segments[0]
    one.own_from = 4 * SIZE
    one.cut(3 * SIZE, 3)
    assert (one.size_bytes, one.own_from, one.file.size()) == (3 * SIZE, 3 * SIZE, 3 * SIZE)
    assert entries(one) == ([(1, SIZE), (2, 2 * SIZE)], [(NOW_MS + 1, 1), (NOW_MS + 2, 2)])


def test_a_removed_segment_is_not_opened_again(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 1)
    one = log.segments[0]
    log.checkpoint()
    assert {path.suffix for path in tmp_path.iterdir()} >= {".log", ".index", ".timeindex"}
    one.remove()
    assert not {path.suffix for path in tmp_path.iterdir()} & {".log", ".index", ".timeindex"}
    with pytest.raises(StorageError, match="was deleted"):
        _ = one.file


def test_lookups_skip_damaged_batches(tmp_path: Path) -> None:
    log = reopened(tmp_path, 4)
    damage(log.segments[0], SIZE)
    assert [header.base_offset for _, _, header in log.batches_from(0)] == [0, 2, 3]
    assert [header.base_offset for _, _, header in log.batches_from(1)] == [2, 3]
    assert [header.base_offset for _, _, header in log.batches_from(3)] == [3]


def later_segment(tmp_path: Path) -> Segment:
    """The second segment of a log, with offsets 5 to 9, written by another process."""
    log = open_at(tmp_path, index_interval_bytes="0")
    for number in range(10):
        if number == 5:
            log.roll(NOW_MS)
        append(log, numbered(number))
    log.close()
    return open_at(tmp_path, index_interval_bytes="0").segments[1]


@pytest.mark.parametrize("wait", [True, False])
def test_offsets_in_indexes_are_relative_to_the_segment(tmp_path: Path, wait: bool) -> None:
    one = later_segment(tmp_path)
    assert entries(one)[0] == [(number, number * SIZE) for number in range(1, 5)]
    assert (one.largest_timestamp, one.largest_timestamp_offset) == (NOW_MS + 9, 9)
    assert [one.entry_point(offset, wait=wait) for offset in (0, 5, 7, 99)] == [
        (5, 0),
        (5, 0),
        (7, 2 * SIZE),
        (9, 4 * SIZE),
    ]
    assert [one.locate(offset, wait=wait)[0] for offset in range(5, 10)] == [number * SIZE for number in range(5)]
    one.scan_indexes()
    assert (one.largest_timestamp, one.largest_timestamp_offset) == (NOW_MS + 9, 9)
    one.cut(2 * SIZE, 7)
    assert entries(one) == ([], [])


def test_the_header_at_the_end_of_a_chunk_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_at(tmp_path)
    for _ in range(4):
        append(log, numbered(log.log_end_offset))
    monkeypatch.setattr(segment, "lookup_bytes", 61)
    region = log.read(0, SIZE + 10, at_least_one=True)
    assert region is not None
    assert region.length == SIZE
    assert [log.segments[0].locate(offset)[0] for offset in range(4)] == [number * SIZE for number in range(4)]


@pytest.mark.parametrize(
    ("timestamp", "is_confirmed", "is_rebuilt"), [(5, False, False), (-1, False, True), (-1, True, False)]
)
def test_times_are_loaded_from_the_index_or_from_the_batches(
    tmp_path: Path, timestamp: int, is_confirmed: bool, is_rebuilt: bool
) -> None:
    log = open_at(tmp_path)
    append(log, stamped(-1))
    append(log, stamped(timestamp))
    log.roll(NOW_MS)
    log.close()
    one = Segment(tmp_path, 0, NOW_MS, log.segments[0].size_bytes)
    one.has_confirmed_times = is_confirmed
    one.path("index").write_bytes(b"")
    one.load_times()
    assert (one.largest_timestamp, one.largest_timestamp_offset) == (timestamp, 1 if timestamp == 5 else 0)
    assert one.has_confirmed_times is (is_confirmed or is_rebuilt)
    # Known times and an empty segment need no index.
    one.forget()
    if timestamp == 5:
        one.load_times()
        assert one._index is None
    empty = Segment(tmp_path, 2, NOW_MS)
    empty.forget()
    empty.load_times()
    assert empty._index is None


def test_times_outside_the_page_cache_are_not_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_at(tmp_path)
    append(log, stamped(5))
    log.roll(NOW_MS)
    log.close()
    one = Segment(tmp_path, 0, NOW_MS, log.segments[0].size_bytes)
    monkeypatch.setattr(index, "cached_bytes", lambda *_: 0)
    with pytest.raises(ColdRead):
        one.load_times(wait=False)
    one.load_times()
    assert one.largest_timestamp == 5


def test_verified_ranges_are_merged() -> None:
    ranges = VerifiedRanges()
    ranges.add(10, 20)
    ranges.add(30, 40)
    assert [ranges.end_at(position) for position in (9, 10, 19, 20, 30, 40)] == [None, 20, 20, None, 40, None]
    ranges.add(50, 60)
    assert ranges._ranges == [(10, 20), (30, 40), (50, 60)]
    ranges.add(20, 30)
    assert ranges._ranges == [(10, 40), (50, 60)]
    ranges.add(0, 5)
    ranges.add(45, 55)
    assert ranges._ranges == [(0, 5), (10, 40), (45, 60)]
    ranges.add(12, 15)
    assert ranges._ranges == [(0, 5), (10, 40), (45, 60)]


def test_a_rebuild_without_waiting_runs_in_a_thread_first(tmp_path: Path) -> None:
    one = reopened(tmp_path).segments[0]
    with pytest.raises(ColdRead) as caught:
        one.rebuild_indexes(wait=False)
    assert (caught.value.position, caught.value.length) == (0, 0)
    # Another client waits for the same rebuild.
    with pytest.raises(ColdRead) as again:
        one.rebuild_indexes(wait=False)
    assert again.value.work == caught.value.work
    assert caught.value.work is not None
    caught.value.work()
    one.largest_timestamp = 5
    one.rebuild_indexes(wait=False)
    assert (one.largest_timestamp, one.largest_timestamp_offset) == (NOW_MS + 9, 9)
    # The result serves one rebuild.
    with pytest.raises(ColdRead):
        one.rebuild_indexes(wait=False)
