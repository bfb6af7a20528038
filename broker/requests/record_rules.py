"""Rules for single records: the timestamp limits of a topic, and the required keys of a compacted topic.

These rules read the records only if the topic's settings or the batch header require it.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.protocol.outcomes import RecordError, Refusal
from headgate.broker.protocol.record_walk import records_without_key, walk
from headgate.wire.buffer import Buffer
from headgate.wire.compression import DECOMPRESSED_BYTES_MAX
from headgate.wire.errors import DecompressedTooLarge, InvalidBatch
from headgate.wire.record_batch import LOG_APPEND_TIME_FLAG, BatchHeader
from headgate.wire.records import decompress_records, record_fields

_UNLIMITED = 2**63 - 1
_REJECTED_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"

# Limit on the records of a checked batch. Each record takes a few microseconds. Batches of real producers contain at
# most some ten thousand records. A malicious batch of `max.message.bytes` can contain twenty million.
checked_records_max = 200_000

# Limits for checks on the event loop, which take at most about 2 ms. A thread checks larger batches, so that they do
# not delay other clients.
inline_records_max = 500
inline_bytes_max = 256 * 1024
inline_compressed_bytes_max = 32 * 1024

# Limit on the invalid records of one batch that the response lists.
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
    """Check the timestamps and keys of a batch. Raises Refusal. Raises TooLargeInline if the batch needs a thread.

    `inline_records` limits the number of records checked on the event loop. It is None in a thread. With LogAppendTime,
    the broker sets the timestamps. It then refuses batches whose header already has the LogAppendTime flag.
    """
    data: Buffer | None = None
    if settings.uses_log_append_time:
        if header.attributes & LOG_APPEND_TIME_FLAG:
            raise _claims_log_append_time(header.records_count)
    else:
        before_ms, latest = settings.message_timestamp_before_max_ms, now_ms + settings.message_timestamp_after_max_ms
        # Check both fields: record timestamps are relative to base_timestamp, and max_timestamp may be wrong.
        if header.max_timestamp > latest or header.base_timestamp > latest or before_ms != _UNLIMITED:
            data = _inflated(batch, header, inline_records)
            _check_timestamps(data, header, now_ms - before_ms, latest)
            if header.max_timestamp > latest:
                # No record has this timestamp. With it, retention would never delete the segment.
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
    """Decompress the records. This is expensive, so all checks share the result."""
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
