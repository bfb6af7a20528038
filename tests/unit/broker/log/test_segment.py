"""One segment: index entries, lookups by offset, verification of batches that another process wrote, rolls."""

import errno
import struct
from pathlib import Path

import pytest

from headgate.broker.log import partition_log, segment
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.segment import Segment
from headgate.broker.runtime.errors import StorageError
from headgate.wire.errors import CorruptBatch
from tests.unit.broker.log.logs import KILLED, NOW_MS, append, fill, numbered, open_at
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


def stamped(*timestamps: int) -> bytes:
    return Batch([NewRecord(b"v", timestamp=timestamp) for timestamp in timestamps]).encode()


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
    one._index = segment.OffsetIndex()
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
    wrong = segment.OffsetIndex()
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


@pytest.mark.parametrize(
    ("configs", "limit", "segments"),
    [
        ({"internal_segment_bytes": str(2 * SIZE)}, None, [0, 2, 4]),
        ({"internal_segment_bytes": str(2 * SIZE - 1)}, None, [0, 1, 2, 3, 4]),
        ({"index_interval_bytes": "0", "segment_index_bytes": "16"}, None, [0, 3]),
        ({"index_interval_bytes": "0", "segment_index_bytes": "15"}, None, [0, 2, 4]),
        ({}, 2, [0, 3]),
        ({}, 4, [0]),
        ({}, 3, [0, 4]),
    ],
)
def test_a_full_segment_is_rolled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    configs: dict[str, str],
    limit: int | None,
    segments: list[int],
) -> None:
    if limit is not None:
        monkeypatch.setattr(partition_log, "relative_offset_max", limit)
    log = open_at(tmp_path, **configs)
    for _ in range(5):
        append(log, numbered(log.log_end_offset))
    assert [one.base_offset for one in log.segments] == segments


@pytest.mark.parametrize(
    ("first", "second", "age_ms", "is_rolled"),
    [
        (0, 1000, 0, False),
        (0, 1001, 0, True),
        # Without a timestamp, the age of the segment counts.
        (-1, 5000, 1000, False),
        (-1, 5000, 1001, True),
        (5000, -1, 1000, False),
        (5000, -1, 1001, True),
        (5000, 6000, 9000, False),
    ],
)
def test_a_segment_is_rolled_by_time(tmp_path: Path, first: int, second: int, age_ms: int, is_rolled: bool) -> None:
    log = open_at(tmp_path, segment_ms="1000")
    append(log, stamped(first))
    log.segments[0].created_ms = NOW_MS - age_ms
    append(log, stamped(second))
    assert len(log.segments) == (2 if is_rolled else 1)


def test_the_first_batch_of_a_segment_may_have_any_size(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="100", segment_ms="1")
    append(log, Batch([NewRecord(bytes(5000), timestamp=1)]).encode())
    assert len(log.segments) == 1


def test_whether_more_batches_follow_a_region(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE))
    for _ in range(4):
        append(log, numbered(log.log_end_offset))

    def more_after(offset: int, batches: int) -> bool:
        region = log.read(offset, batches * SIZE, at_least_one=True)
        assert region is not None
        return log.has_more(region)

    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    assert [more_after(0, 2), more_after(2, 2)] == [True, False]
    log.roll(NOW_MS)
    # The last segment is empty.
    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    log.append(numbered(4), partition_log.read_header(numbered(4)), NOW_MS, awaits_flush=True)
    # The batch in the last segment is hidden.
    assert [more_after(offset, 1) for offset in range(4)] == [True, True, True, False]
    assert log.note_flushed(5) == SIZE
    assert [more_after(offset, 1) for offset in range(5)] == [True, True, True, True, False]


def test_a_few_sealed_segments_stay_open_after_a_read(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE))
    for _ in range(10):
        append(log, numbered(log.log_end_offset))
    for one in log.segments[:-1]:
        one.forget()
    for offset in (0, 2, 4, 2, 6, 4, 8):
        log.read(offset, 1, at_least_one=True)
    # The last segment is always open and does not count.
    assert [one.base_offset for one in log.segments if one._index is not None] == [4, 6, 8]
    log.delete_records(6)
    log.read(6, 1, at_least_one=True)
    assert [one.base_offset for one in log._open_sealed] == [6]
    assert log._base_offsets == [one.base_offset for one in log.segments] == [6, 8]


def test_lookups_skip_damaged_batches(tmp_path: Path) -> None:
    log = reopened(tmp_path, 4)
    damage(log.segments[0], SIZE)
    assert [header.base_offset for _, _, header in log.batches_from(0)] == [0, 2, 3]
    assert [header.base_offset for _, _, header in log.batches_from(1)] == [2, 3]
    assert [header.base_offset for _, _, header in log.batches_from(3)] == [3]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_segment_is_rolled_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(*_: object) -> None:
        raise StorageError("no", number)

    log = open_at(tmp_path)
    append(log, numbered(0))
    monkeypatch.setattr(partition_log, "write_snapshot", fails)
    if number == errno.EIO:
        with pytest.raises(StorageError):
            log.roll(NOW_MS)
        assert log.failure is not None
    else:
        assert log.roll(NOW_MS).base_offset == 1
        assert log.failure is None
    assert len(log.segments) == (1 if number == errno.EIO else 2)


def test_unflushed_segments_start_at_the_flushed_offset(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes=str(2 * SIZE), index_interval_bytes="0")
    for _ in range(5):
        append(log, numbered(log.log_end_offset))
    starts = {}
    for flushed in range(6):
        log.flushed_offset = flushed
        starts[flushed] = [(one.base_offset, position) for one, position in log.unflushed_ranges()]
        assert [file.path.name for file in log.unflushed_files()] == [f"{base:020d}.log" for base, _ in starts[flushed]]
    assert starts == {
        0: [(0, 0), (2, 0), (4, 0)],
        1: [(0, SIZE), (2, 0), (4, 0)],
        2: [(2, 0), (4, 0)],
        3: [(2, SIZE), (4, 0)],
        4: [(4, 0)],
        5: [(4, 0)],
    }
