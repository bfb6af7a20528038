"""Consumers see an acks=all batch only after its fsync completes."""

import random
from pathlib import Path

import pytest

from headgate.broker.log.partition_log import OffsetOutOfRange, PartitionLog
from headgate.broker.protocol.produced_batch import validate_produced
from headgate.wire.record_batch import read_header
from tests.unit.broker.log.logs import NOW_MS, numbered, open_at


def append(log: PartitionLog, *, awaits_flush: bool, records: int = 1) -> None:
    batch = numbered(log.log_end_offset, records)
    log.append(batch, validate_produced(batch)[1], NOW_MS, awaits_flush=awaits_flush)


def readable_to(log: PartitionLog, offset: int, max_bytes: int) -> int:
    """Read from `offset` on. Return the offset that a consumer reaches."""
    while (region := log.read(offset, max_bytes, at_least_one=True)) is not None:
        data, position = region.content(), 0
        while position < len(data):
            header = read_header(data, position)
            assert position + header.size_bytes <= len(data), "a batch was cut"
            position, offset = position + header.size_bytes, header.last_offset + 1
        assert log.has_more(region) == (offset < log.high_watermark)
    return offset


def test_a_batch_that_waits_for_its_fsync_is_hidden_until_then(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, awaits_flush=True)
    assert (log.high_watermark, log.last_stable_offset, log.log_end_offset) == (0, 0, 1)
    assert log.read(0, 1000, at_least_one=True) is None
    assert log.note_flushed(1) > 0
    assert log.high_watermark == 1
    assert readable_to(log, 0, 1000) == 1


def test_batches_with_acks_1_are_visible_at_once_unless_one_before_them_waits(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, awaits_flush=False)
    assert log.high_watermark == 1
    append(log, awaits_flush=True)
    append(log, awaits_flush=False)
    append(log, awaits_flush=False)
    append(log, awaits_flush=True)
    append(log, awaits_flush=False)
    assert log.high_watermark == 1
    # The flush covers the first waiting batch. The two batches after it do not wait for a flush.
    log.note_flushed(2)
    assert log.high_watermark == 4
    log.note_flushed(5)
    assert log.high_watermark == 6


def test_an_offset_between_the_high_watermark_and_the_end_is_in_range(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, awaits_flush=True, records=3)
    for offset in range(4):
        assert log.read(offset, 1000, at_least_one=True) is None
    with pytest.raises(OffsetOutOfRange):
        log.read(4, 1000, at_least_one=True)


def test_flush_messages_hides_records_until_they_are_synced(tmp_path: Path) -> None:
    log = open_at(tmp_path, flush_messages="3")
    append(log, awaits_flush=False)
    append(log, awaits_flush=False)
    assert log.high_watermark == 2
    append(log, awaits_flush=False)
    assert log.high_watermark == 2


def test_lookups_by_time_and_deletions_end_at_the_high_watermark(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, awaits_flush=False, records=5)
    append(log, awaits_flush=True, records=5)
    assert log.offset_for_timestamp(NOW_MS + 4) == (4, NOW_MS + 4)
    assert log.offset_for_timestamp(NOW_MS + 5) is None
    assert log.offset_of_largest_timestamp() == (4, NOW_MS + 4)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(6)
    assert log.delete_records(-1) == 5
    log.note_flushed(10)
    assert log.offset_for_timestamp(NOW_MS + 5) == (5, NOW_MS + 5)
    assert log.offset_of_largest_timestamp() == (9, NOW_MS + 9)
    assert log.delete_records(-1) == 10


def test_retention_keeps_records_above_the_high_watermark(tmp_path: Path) -> None:
    log = open_at(tmp_path, internal_segment_bytes="200", retention_bytes="0")
    for _ in range(5):
        append(log, awaits_flush=True)
    log.apply_retention(NOW_MS)
    assert log.log_start_offset == 0
    log.note_flushed(5)
    log.apply_retention(NOW_MS)
    assert log.log_start_offset == 5


@pytest.mark.parametrize("seed", range(5))
def test_readers_never_pass_the_high_watermark(tmp_path: Path, seed: int) -> None:
    randomness = random.Random(seed)
    log = open_at(tmp_path, internal_segment_bytes="1500", index_interval_bytes="200")
    waiting: list[tuple[int, int]] = []
    for _ in range(300):
        if randomness.random() < 0.2 and log.flushed_offset < log.log_end_offset:
            log.note_flushed(randomness.choice([log.log_end_offset, *(end for _, end in waiting)]))
            waiting = [(base, end) for base, end in waiting if end > log.flushed_offset]
        else:
            awaits_flush = randomness.random() < 0.5
            base = log.log_end_offset
            append(log, awaits_flush=awaits_flush, records=randomness.randrange(1, 4))
            if awaits_flush:
                waiting.append((base, log.log_end_offset))
        assert log.high_watermark == (waiting[0][0] if waiting else log.log_end_offset)
        start = randomness.randrange(log.log_end_offset + 1)
        reached = readable_to(log, start, randomness.choice([1, 300, 1000, 100_000]))
        assert reached == max(log.high_watermark, start)
