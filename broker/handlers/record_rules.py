"""Rules that single records can break: times that are too far away, keys that a compacted topic needs.

Looked at only when a topic's settings ask for it or the batch's header already shows a fault, so that the hot path
never walks a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.record_batch import LOG_APPEND_TIME_FLAG, BatchHeader, inflate, inflated_records
from headgate.broker.protocol.record_walk import InvalidBatch, walk
from headgate.broker.state.configs.effective import TopicSettings

_UNLIMITED = 2**63 - 1
_REJECTED_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"

# Records of one batch that are looked at, at a few microseconds each, while everybody waits. The largest batches of
# real producers have some ten thousand; a bomb of `max.message.bytes` has twenty million.
looked_at_records_max = 200_000

# Faults that are told one by one.
record_errors_max = 1_000


class Refused(Exception):
    """This partition's batch is not taken."""

    def __init__(self, error: ErrorCode, message: str, record_errors: Sequence["RecordError"] = ()) -> None:
        super().__init__(message)
        self.error = error
        self.record_errors = record_errors


@dataclass(frozen=True, slots=True)
class RecordError:
    """One record that is to blame, by its place in the batch (KIP-467)."""

    batch_index: int
    message: str


def check_records(
    batch: bytes | memoryview, header: BatchHeader, settings: TopicSettings, partition: str, now_ms: int
) -> None:
    """Raises Refused. Timestamps are the broker's own under LogAppendTime, so nobody's fault but who claims them."""
    data: bytes | memoryview | None = None
    if settings.uses_log_append_time:
        if header.attributes & LOG_APPEND_TIME_FLAG:
            raise _claims_log_append_time(header.records_count)
    else:
        before_ms, latest = settings.message_timestamp_before_max_ms, now_ms + settings.message_timestamp_after_max_ms
        # Records count their times from the header's first one, whatever it says of the last.
        if header.max_timestamp > latest or header.base_timestamp > latest or before_ms != _UNLIMITED:
            data = _inflated(batch, header)
            _check_timestamps(data, header, now_ms - before_ms, latest)
            if header.max_timestamp > latest:
                # No record has it, and the segment would never grow old.
                raise Refused(ErrorCode.invalid_timestamp, f"no record has the time {header.max_timestamp}")
    if settings.is_compacted:
        _check_keys(_inflated(batch, header) if data is None else data, header, partition)


def _claims_log_append_time(records_count: int) -> Refused:
    reason = "Producer should not set timestamp type to LogAppendTime."
    faults = [RecordError(index, reason) for index in range(min(records_count, record_errors_max))]
    return Refused(ErrorCode.invalid_timestamp, _REJECTED_TIMESTAMPS, faults)


def _check_count(header: BatchHeader) -> None:
    count = header.records_count
    if count > looked_at_records_max:
        raise Refused(ErrorCode.invalid_record, f"{count} records in a batch; this topic takes {looked_at_records_max}")


def _inflated(batch: bytes | memoryview, header: BatchHeader) -> bytes | memoryview:
    """The decompressed records. This is expensive, so a batch is decompressed once for all checks."""
    _check_count(header)
    try:
        return inflate(batch, header)
    except InvalidBatch as error:
        raise Refused(ErrorCode.invalid_record, str(error)) from error


def _check_timestamps(data: bytes | memoryview, header: BatchHeader, earliest: int, latest: int) -> None:
    try:
        faults = [
            RecordError(
                index,
                f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]",
            )
            for index, record in enumerate(inflated_records(data, header))
            if not earliest <= record.timestamp <= latest and record.timestamp >= 0
        ]
    except InvalidBatch as error:
        raise Refused(ErrorCode.invalid_record, str(error)) from error
    if faults:
        raise Refused(ErrorCode.invalid_timestamp, _REJECTED_TIMESTAMPS, faults[:record_errors_max])


def _check_keys(data: bytes | memoryview, header: BatchHeader, partition: str) -> None:
    try:
        walk(bytes(data), header.records_count)
        keyless = [index for index, record in enumerate(inflated_records(data, header)) if record.key is None]
    except InvalidBatch as error:
        raise Refused(ErrorCode.invalid_record, str(error)) from error
    if keyless:
        reason = f"Compacted topic cannot accept message without key in topic partition {partition}"
        message = "One or more records have been rejected"
        faults = [RecordError(index, reason) for index in keyless[:record_errors_max]]
        raise Refused(ErrorCode.invalid_record, message, faults)
