"""Error codes of a Produce response. Distinguishes errors which prove that the batch was not written."""

from typing import Final

from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import InvalidRequest, KafkaClientError, NotAuthorized, RetriableError, broker_error

# The broker does not know the previous sequence number, and it did not store this batch. Only one batch per partition
# is in flight. A stored batch would be the last one of its producer id, and the broker would detect the duplicate.
SEQUENCE_LOST: Final = frozenset({ErrorCode.out_of_order_sequence_number, ErrorCode.unknown_producer_id})
# The producer id is no longer valid. This attempt was not written, but an earlier attempt may have been.
_IDENTITY_INVALID: Final = frozenset(
    {ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_id_mapping, ErrorCode.producer_fenced}
)
IDENTITY_LOST: Final = SEQUENCE_LOST | _IDENTITY_INVALID

# Brokers check for these errors before the append. Any other error may follow the append. For example, a leader that
# steps down while it waits for replicas returns NOT_LEADER_OR_FOLLOWER. A failed fsync returns KAFKA_STORAGE_ERROR.
_REJECTED_BEFORE_APPEND: Final = IDENTITY_LOST | {
    ErrorCode.cluster_authorization_failed,
    ErrorCode.corrupt_message,
    ErrorCode.invalid_record,
    ErrorCode.invalid_request,
    ErrorCode.invalid_required_acks,
    ErrorCode.invalid_timestamp,
    ErrorCode.invalid_topic_exception,
    ErrorCode.leader_not_available,
    ErrorCode.message_too_large,
    ErrorCode.not_enough_replicas,
    ErrorCode.policy_violation,
    ErrorCode.record_list_too_large,
    ErrorCode.topic_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
    ErrorCode.unsupported_compression_type,
    ErrorCode.unsupported_for_message_format,
    ErrorCode.unsupported_version,
}
_UNKNOWN_CODE: Final = ErrorCode.unknown_server_error


def error_code(number: int) -> ErrorCode | None:
    """Return the error of a Produce response, or None for success. Unknown codes become UNKNOWN_SERVER_ERROR."""
    if number == 0:
        return None
    try:
        return ErrorCode(number)
    except ValueError:
        return _UNKNOWN_CODE


def may_be_written(code: ErrorCode) -> bool:
    """Return True if the broker may have stored the batch although it reported this error."""
    return code not in _REJECTED_BEFORE_APPEND


def rejection(code: ErrorCode, topic: str) -> KafkaClientError:
    """Return the error for the final response of a broker."""
    subject = f"topic {topic}"
    error = broker_error(code, None, subject)
    text = ""
    kind: type[KafkaClientError] = type(error)
    if code is ErrorCode.topic_authorization_failed:
        kind, text = NotAuthorized, f"Not authorized to access topic {topic}."
    elif code is ErrorCode.invalid_record:
        kind = InvalidRequest
        text = f"The broker rejected a record for {topic} as invalid (INVALID_RECORD). "
        text += "A topic with cleanup.policy=compact requires a key in every record."
    elif code in IDENTITY_LOST:
        kind = RetriableError
        text = f"The broker rejected the producer id of the batch ({code.name.upper()}). Send the records again."
    elif code in (ErrorCode.not_enough_replicas, ErrorCode.not_enough_replicas_after_append):
        kind, text = RetriableError, f"Too few replicas of {topic} are in sync."
    elif code is ErrorCode.kafka_storage_error:
        kind, text = RetriableError, "The broker cannot write to its disk, which may be full."
    if text:
        error = kind(text)
        error.subject, error.kafka_code = subject, code
    return error


def possibly_written(error: KafkaClientError) -> KafkaClientError:
    """Return the same error with a note that the outcome is unknown."""
    found = type(error)(f"{error} The records may have been written anyway.")
    found.subject, found.kafka_code, found.kafka_message = error.subject, error.kafka_code, error.kafka_message
    return found
