"""The partition log from the view of consumers and retention."""

import errno
from itertools import accumulate
from pathlib import Path

import pytest

from headgate.broker.log.files import LogFile
from headgate.broker.log.partition_log import OffsetOutOfRange, PartitionLog
from headgate.broker.runtime.errors import StorageError
from headgate.wire.record_batch import LOG_APPEND_TIME_FLAG, checksum, read_header
from headgate.wire.records import read_records
from tests.unit.broker.log.logs import NOW_MS, append, assert_dense, fill, numbered, open_at, values_from
from tests.wire.record_batches import Batch, NewRecord

SMALL_SEGMENTS = {"segment_bytes": "1048576"}


def test_records_come_back_in_order_over_many_segments(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000", index_interval_bytes="100")
    fill(log, 200)
    assert len(log.segments) >= 10
    assert_dense(log)


@pytest.mark.parametrize("max_bytes", [1, 100, 137, 1000, 100_000])
def test_a_reader_gets_everything_whatever_its_limit(tmp_path: Path, max_bytes: int) -> None:
    log = open_at(tmp_path, internal_segment_bytes="5000", index_interval_bytes="100")
    fill(log, 100)
    assert [offset for offset, _ in values_from(log, 0, max_bytes)] == list(range(300))


def test_a_large_batch_that_the_limit_would_cut_is_left_for_the_next_read(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    large = Batch(records=[NewRecord(bytes(10_000))]).encode()
    for _ in range(10):
        append(log, large)
    region = log.read(0, 3 * len(large) + 5_000, at_least_one=True)
    assert region is not None
    assert region.length == 3 * len(large)
    again = log.read(3, 2 * len(large) - 1, at_least_one=True)
    assert again is not None
    assert (again.position, again.length) == (3 * len(large), len(large))


def test_small_batches_fill_a_read_to_the_last_that_fits(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 200)
    everything = log.read(0, 1 << 20, at_least_one=True)
    assert everything is not None
    ends = list(accumulate(header.size_bytes for _, _, header in log.batches_from(0)))
    for limit in (*range(4_000, 4_400, 7), 10_000, everything.length - 1):
        region = log.read(0, limit, at_least_one=True)
        assert region is not None
        assert region.length == max(end for end in ends if end <= limit)


@pytest.mark.parametrize("first_bytes", [10, 20_000])
def test_a_small_batch_between_large_ones_is_read_with_the_one_before_it(tmp_path: Path, first_bytes: int) -> None:
    log = open_at(tmp_path)
    sizes = [len(Batch([NewRecord(bytes(size))]).encode()) for size in (first_bytes, 20_000, 100, 20_000, 100)]
    for size in (first_bytes, 20_000, 100, 20_000, 100):
        append(log, Batch([NewRecord(bytes(size))]).encode())
    for limit in (sum(sizes[:3]), sum(sizes[:3]) + 15_000):
        region = log.read(0, limit, at_least_one=True)
        assert region is not None
        assert region.length == sum(sizes[:3])


def test_a_length_that_rotted_behind_the_limit_cuts_the_read_and_no_more(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 200)
    _, position, _ = next(log.batches_from(50))
    with log.segments[0].path("log").open("r+b") as file:
        file.seek(position + 8)
        file.write(b"\xff\xff\xff\xf4")
    region = log.read(0, position + 10, at_least_one=True)
    assert region is not None
    assert region.length == position + 10


def test_a_read_inside_a_batch_returns_the_whole_batch(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 3, records_each=10)
    assert values_from(log, 15)[0] == (15, b"15")


def test_a_read_at_the_end_is_empty_and_one_beyond_is_out_of_range(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 2)
    assert log.read(6, 1000, at_least_one=True) is None
    with pytest.raises(OffsetOutOfRange):
        log.read(7, 1000, at_least_one=True)
    with pytest.raises(OffsetOutOfRange):
        log.read(-1, 1000, at_least_one=True)


def test_without_at_least_one_a_batch_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log, 2, records_each=50)
    sizes = [header.size_bytes for _, _, header in log.batches_from(0)]
    # The first batch needs a lookup. The last one is on the fast path.
    for offset, size in zip((0, 50), sizes, strict=True):
        for limit, length in ((10, 0), (size - 1, 0), (size, size), (size + 1, size)):
            region = log.read(offset, limit, at_least_one=False)
            assert region is not None
            assert region.length == length


@pytest.mark.parametrize(("epoch", "expected"), [(-1, (-1, -1)), (4, (4, 0)), (5, (5, 3)), (6, (-1, -1))])
def test_only_epochs_up_to_the_current_one_have_an_end(tmp_path: Path, epoch: int, expected: tuple[int, int]) -> None:
    log = open_at(tmp_path, leader_epoch=5)
    fill(log, 1)
    assert log.end_offset_for_epoch(epoch) == expected


def test_offsets_by_time_are_exact_to_the_record(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="3000", index_interval_bytes="100")
    fill(log, 100)
    for offset in (0, 1, 7, 150, 299):
        assert log.offset_for_timestamp(NOW_MS + offset) == (offset, NOW_MS + offset)
    assert log.offset_for_timestamp(0) == (0, NOW_MS)
    assert log.offset_for_timestamp(NOW_MS + 300) is None
    assert log.offset_of_largest_timestamp() == (299, NOW_MS + 299)


def test_the_largest_timestamp_is_found_although_later_records_are_older(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    times = [5, 9, 3, 9, 1]
    append(
        log,
        Batch(records=[NewRecord(b"v", timestamp=NOW_MS + time) for time in times], max_timestamp=NOW_MS + 9).encode(),
    )
    append(log, Batch(records=[NewRecord(b"v", timestamp=NOW_MS + 2)]).encode())
    assert log.offset_of_largest_timestamp() == (1, NOW_MS + 9)


@pytest.fixture
def rolled_for_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    """A log whose disk became full right after a segment roll."""
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 3)
    large = Batch(records=[NewRecord(bytes(1_900))]).encode()

    def full(*_: object) -> int:
        raise StorageError("no room", errno.ENOSPC)

    with monkeypatch.context() as patched:
        patched.setattr(LogFile, "write", full)
        with pytest.raises(StorageError):
            append(log, large)
    assert [segment.base_offset for segment in log.segments] == [0, 9]
    return log


def test_the_last_batch_is_read_although_the_write_behind_it_failed(rolled_for_a_failed_write: PartitionLog) -> None:
    log = rolled_for_a_failed_write
    assert [offset for offset, _ in values_from(log, 6)] == [6, 7, 8]
    fill(log, 1)
    assert_dense(log)


def test_an_empty_segment_is_not_rolled(rolled_for_a_failed_write: PartitionLog) -> None:
    log = rolled_for_a_failed_write
    first = log.roll(NOW_MS).base_offset
    fill(log, 1)
    log.delete_records(first)
    log.close()
    assert_dense(log)
    reopened = open_at(log.directory)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (9, 12)
    assert_dense(reopened)


def test_delete_records_moves_the_start_durably_and_drops_whole_segments(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 100)
    segments = len(log.segments)
    assert log.delete_records(151) == 151
    assert len(log.segments) < segments
    with pytest.raises(OffsetOutOfRange):
        log.read(150, 1000, at_least_one=True)
    assert values_from(log, 151)[0] == (151, b"151")
    log.close()
    again = open_at(tmp_path)
    assert again.log_start_offset == 151
    assert again.delete_records(-1) == 300
    again.close()
    last = open_at(tmp_path)
    assert (last.log_start_offset, last.log_end_offset) == (300, 300)
    assert append(last, numbered(300)) == 300


def test_retention_by_size_keeps_the_newest_segments(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000", retention_bytes="6000")
    fill(log, 100)
    removed = log.apply_retention(NOW_MS)
    assert removed > 0
    assert 6000 <= log.size_bytes < 6000 + 4000
    assert_dense(log)
    assert log.log_start_offset == log.segments[0].base_offset


def test_retention_by_time_uses_record_timestamps_and_may_empty_the_log(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000", retention_ms="1000")
    fill(log, 100)
    assert log.apply_retention(NOW_MS + 500) == 0
    assert log.apply_retention(NOW_MS + 100_000) > 0
    assert (log.log_start_offset, log.log_end_offset) == (300, 300)
    assert append(log, numbered(300)) == 300
    assert_dense(log)


def test_log_append_time_replaces_the_producers_timestamps(tmp_path: Path) -> None:
    log = open_at(tmp_path, message_timestamp_type="LogAppendTime")
    append(log, Batch(records=[NewRecord(b"v", timestamp=5)]).encode())
    assert log.offset_for_timestamp(NOW_MS) == (0, NOW_MS)


def test_a_deleted_segment_stays_readable_for_open_readers(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 50)
    region = log.read(0, 500, at_least_one=True)
    assert region is not None
    before = region.file.read(region.position, region.length)
    log.delete_records(140)
    assert not region.file.path.exists()
    assert region.file.read(region.position, region.length) == before


def test_files_are_let_go_with_their_log(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    log = open_at(tmp_path, internal_segment_bytes="2000")
    fill(log, 200)
    for file in log.unflushed_files():
        file.sync()
    values_from(log, 0)
    assert descriptors() - before <= 4
    log.close()
    assert descriptors() == before


def test_flush_messages_says_when_records_must_reach_the_disk(tmp_path: Path) -> None:
    log = open_at(tmp_path, flush_messages="6")
    due = []
    for _ in range(3):
        fill(log, 1)
        due.append(log.is_flush_due)
    log.flushed_offset = log.log_end_offset
    assert [*due, log.is_flush_due] == [False, True, True, False]


def test_a_segment_whose_index_is_full_is_sealed(tmp_path: Path) -> None:
    log = open_at(tmp_path, index_interval_bytes="1", segment_index_bytes="40")
    fill(log, 30)
    assert len(log.segments) > 3
    assert all(segment.index_bytes <= 40 for segment in log.segments)
    assert_dense(log)


def test_the_end_of_a_deleted_epoch_is_the_log_start_offset(tmp_path: Path) -> None:
    log = open_at(tmp_path, leader_epoch=2)
    assert log.end_offset_for_epoch(0) == (0, 0)
    fill(log, 2)
    log.leader_epoch = 4
    fill(log, 2)
    log.leader_epoch = 6
    assert log.end_offset_for_epoch(1) == (1, 0)
    assert log.end_offset_for_epoch(3) == (2, 6)
    log.delete_records(5)
    assert log.end_offset_for_epoch(1) == (1, 5)
    assert log.end_offset_for_epoch(2) == (2, 6)
    log.delete_records(8)
    assert log.end_offset_for_epoch(2) == (2, 8)
    assert log.end_offset_for_epoch(5) == (4, 12)
    log.delete_records(12)
    assert log.end_offset_for_epoch(4) == (4, 12)
    assert log.end_offset_for_epoch(6) == (6, 12)


def test_a_client_cannot_claim_the_brokers_time(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, numbered(0, 2, attributes=LOG_APPEND_TIME_FLAG))
    region = log.read(0, 1 << 20, at_least_one=True)
    assert region is not None
    batch = region.file.read(region.position, region.length)
    assert not read_header(batch).attributes & LOG_APPEND_TIME_FLAG
    assert checksum(batch) == read_header(batch).crc
    assert [record.timestamp for record in read_records(batch)] == [NOW_MS, NOW_MS + 1]


def test_a_file_that_cannot_be_opened_is_named_with_its_partition(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match=r"orders-0/00000000000000000000\.log"):
        LogFile(path)
