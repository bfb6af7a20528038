"""Partition logs for tests: opens them as the broker does, fills them with numbered records, and reads them back."""

from pathlib import Path

from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.recovery import LastRun, open_log
from headgate.broker.protocol.produced_batch import validate_produced
from headgate.broker.state.settings import BrokerSettings
from headgate.wire.errors import CorruptBatch
from headgate.wire.record_batch import read_header
from headgate.wire.records import read_records
from tests.wire.record_batches import Batch, NewRecord

NOW_MS = 1_700_000_000_000
CLEAN = LastRun(stopped_cleanly=True, same_boot=True)
KILLED = LastRun(stopped_cleanly=False, same_boot=True)
POWER_CUT = LastRun(stopped_cleanly=False, same_boot=False)


def open_at(
    directory: Path, last_run: LastRun = CLEAN, recovery_point: int = 0, leader_epoch: int = 0, **overrides: str
) -> PartitionLog:
    directory.mkdir(exist_ok=True)
    configs = {name.replace("_", "."): value for name, value in overrides.items()}
    settings = BrokerSettings().topic_settings(configs)
    return open_log(directory, settings, last_run, recovery_point, leader_epoch, NOW_MS)


def numbered(first: int, count: int = 1, **fields: int) -> bytes:
    """Return a batch of `count` records. Each value equals the record's offset if `first` is the log end offset."""
    rows = [NewRecord(str(number).encode(), timestamp=NOW_MS + number) for number in range(first, first + count)]
    return Batch(records=rows, **fields).encode()  # type: ignore[arg-type]


def stamped(*timestamps: int, max_timestamp: int | None = None, base_offset: int = 0) -> bytes:
    """Return a batch of records with these timestamps."""
    records = [NewRecord(b"v", timestamp=timestamp) for timestamp in timestamps]
    return Batch(records, max_timestamp=max_timestamp, base_offset=base_offset).encode()


def append(log: PartitionLog, batch: bytes) -> int:
    return log.append(batch, validate_produced(batch)[1], NOW_MS)


def fill(log: PartitionLog, batches: int, records_each: int = 3) -> None:
    for _ in range(batches):
        append(log, numbered(log.log_end_offset, records_each))


def values_from(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """Fetch as a consumer does. Return (offset, value) of every record from `offset` to the end."""
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        region = log.read(offset, max_bytes, at_least_one=True)
        assert region is not None
        data = region.file.read(region.position, region.length)
        position, before = 0, offset
        while len(data) - position >= 61:
            header = read_header(data, position)
            if position + header.size_bytes > len(data):
                break
            batch = read_records(data[position : position + header.size_bytes])
            found += [(record.offset, record.value) for record in batch if record.offset >= offset]
            offset = header.last_offset + 1
            position += header.size_bytes
        assert offset > before, "a read made no progress"
    return found


def readable_offsets(log: PartitionLog) -> set[int]:
    """Read each offset separately. Return the readable offsets, without those of damaged batches."""
    readable = set()
    for offset in range(log.log_start_offset, log.log_end_offset):
        try:
            region = log.read(offset, 1, at_least_one=True)
        except CorruptBatch:
            continue
        assert region is not None
        batch = region.file.read(region.position, region.length)
        readable |= {record.offset for record in read_records(batch)}
    return readable


def assert_dense(log: PartitionLog) -> None:
    """Check that the log holds every record exactly once, in order and with its original value."""
    expected = [(offset, str(offset).encode()) for offset in range(log.log_start_offset, log.log_end_offset)]
    assert values_from(log, log.log_start_offset) == expected
