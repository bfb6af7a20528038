"""Rules for single records: the timestamp limits of a topic, and the keys that a compacted topic requires.

The records are read only if the topic's settings or the batch header require it. Other batches are appended without
reading their records.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.protocol.record_walk import records_without_key, walk
from headgate.broker.protocol.refusal import RecordError, Refusal
from headgate.wire.buffer import Buffer
from headgate.wire.compression import DECOMPRESSED_BYTES_MAX
from headgate.wire.errors import DecompressedTooLarge, InvalidBatch
from headgate.wire.record_batch import LOG_APPEND_TIME_FLAG, BatchHeader
from headgate.wire.records import decompress_records, record_fields

_UNLIMITED = 2**63 - 1
_REJECTED_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"

# Records of one batch that are checked, at a few microseconds each. Batches of real producers contain at most some ten
# thousand records. A malicious batch of `max.message.bytes` contains twenty million.
checked_records_max = 200_000

# Up to these limits a batch is checked on the event loop, in about 2 ms at the most. Larger batches are checked in a
# thread, and other clients are served meanwhile.
inline_records_max = 500
inline_bytes_max = 256 * 1024
inline_compressed_bytes_max = 32 * 1024

# Invalid records of one batch that the response lists.
record_errors_max = 1_000


class TooLargeInline(Exception):
    """The check takes too long for the event loop."""


def check_records(
    batch: Buffer,
    header: BatchHeader,
    settings: TopicSettings,
    partition: str,
    now_ms: int,
    inline_records: int | None,
) -> None:
    """Raises Refusal. On the event loop, raises TooLargeInline for batches that need a thread.

    `inline_records` is the number of records that may be checked on the event loop; None if this is a thread. With
    LogAppendTime the broker sets the timestamps. A batch is then refused only if it claims to have such timestamps.
    """
    data: Buffer | None = None
    if settings.uses_log_append_time:
        if header.attributes & LOG_APPEND_TIME_FLAG:
            raise _claims_log_append_time(header.records_count)
    else:
        before_ms, latest = settings.message_timestamp_before_max_ms, now_ms + settings.message_timestamp_after_max_ms
        # Record timestamps are deltas to base_timestamp. max_timestamp may be wrong.
        if header.max_timestamp > latest or header.base_timestamp > latest or before_ms != _UNLIMITED:
            data = _inflated(batch, header, inline_records)
            _check_timestamps(data, header, now_ms - before_ms, latest)
            if header.max_timestamp > latest:
                # No record has this timestamp, and retention would never delete the segment.
                raise Refusal(ErrorCode.invalid_timestamp, f"no record has the timestamp {header.max_timestamp}")
    if settings.is_compacted:
        _check_keys(_inflated(batch, header, inline_records) if data is None else data, header, partition)


def _claims_log_append_time(records_count: int) -> Refusal:
    reason = "Producer should not set timestamp type to LogAppendTime."
    errors = [RecordError(index, reason) for index in range(min(records_count, record_errors_max))]
    return Refusal(ErrorCode.invalid_timestamp, _REJECTED_TIMESTAMPS, errors)


def _check_count(header: BatchHeader) -> None:
    count = header.records_count
    if count > checked_records_max:
        raise Refusal(ErrorCode.invalid_record, f"{count} records in a batch; this topic takes {checked_records_max}")


def _inflated(batch: Buffer, header: BatchHeader, inline_records: int | None) -> Buffer:
    """The decompressed records. This is expensive, so a batch is decompressed once for all checks."""
    _check_count(header)
    is_inline = inline_records is not None
    if inline_records is not None and (
        header.records_count > inline_records
        or len(batch) > (inline_compressed_bytes_max if header.codec else inline_bytes_max)
    ):
        raise TooLargeInline
    try:
        return decompress_records(batch, header, inline_bytes_max if is_inline else DECOMPRESSED_BYTES_MAX)
    except DecompressedTooLarge as error:
        if is_inline:
            raise TooLargeInline from error
        raise refusal_of(error) from error
    except InvalidBatch as error:
        raise refusal_of(error) from error


def _check_timestamps(data: Buffer, header: BatchHeader, earliest: int, latest: int) -> None:
    try:
        errors = [
            RecordError(
                index,
                f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]",
            )
            for index, record in enumerate(record_fields(data, header))
            if not earliest <= record.timestamp <= latest and record.timestamp >= 0
        ]
    except InvalidBatch as error:
        raise refusal_of(error) from error
    if errors:
        raise Refusal(ErrorCode.invalid_timestamp, _REJECTED_TIMESTAMPS, errors[:record_errors_max])


def _check_keys(data: Buffer, header: BatchHeader, partition: str) -> None:
    try:
        walk(data, header.records_count)
    except InvalidBatch as error:
        raise refusal_of(error) from error
    keyless = records_without_key(data, header.records_count)
    if keyless:
        reason = f"Compacted topic cannot accept message without key in topic partition {partition}"
        message = "One or more records have been rejected"
        errors = [RecordError(index, reason) for index in keyless[:record_errors_max]]
        raise Refusal(ErrorCode.invalid_record, message, errors)
