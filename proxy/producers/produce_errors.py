"""Error codes of a Produce response: which of them prove that the batch was not written, and the proxy's own errors."""

from typing import Final

from aiokafka import errors as kafka

from headgate.proxy.errors import KafkaBadRequest, KafkaRetriable, NotAuthorized, ProxyError
from headgate.proxy.kafka_errors import proxy_error


class InvalidRecord(kafka.BrokerResponseError):
    """INVALID_RECORD, which aiokafka does not know."""

    errno = 87
    message = "INVALID_RECORD"
    description = "The broker rejected a record of the batch."


class UnsupportedCompression(kafka.BrokerResponseError):
    """UNSUPPORTED_COMPRESSION_TYPE, which aiokafka does not know."""

    errno = 76
    message = "UNSUPPORTED_COMPRESSION_TYPE"
    description = "The broker does not support the compression codec of the batch."


_UNKNOWN_TO_AIOKAFKA: Final = {error.errno: error for error in (InvalidRecord, UnsupportedCompression)}

# The broker does not know the sequence before this batch. It has not stored the batch either: a stored batch is the
# last one of its producer id, because one batch per partition is in flight, and a broker recognizes it as a duplicate.
SEQUENCE_LOST: Final = (kafka.OutOfOrderSequenceNumber, kafka.UnknownProducerId)
# The producer id is no longer valid. This attempt was not written, but an earlier attempt may have been.
_IDENTITY_INVALID: Final = (kafka.InvalidProducerEpoch, kafka.InvalidProducerIdMapping, kafka.ProducerFenced)
IDENTITY_LOST: Final = (*SEQUENCE_LOST, *_IDENTITY_INVALID)

# Checked before the append. Every other error may reach the client after it: a leader that steps down while replicas
# are pending answers NOT_LEADER_OR_FOLLOWER, a failed fsync answers KAFKA_STORAGE_ERROR.
_REFUSED_BEFORE_APPEND: Final = frozenset(
    (
        *IDENTITY_LOST,
        InvalidRecord,
        UnsupportedCompression,
        kafka.ClusterAuthorizationFailedError,
        kafka.CorruptRecordException,
        kafka.InvalidRequestError,
        kafka.InvalidRequiredAcksError,
        kafka.InvalidTimestampError,
        kafka.InvalidTopicError,
        kafka.LeaderNotAvailableError,
        kafka.MessageSizeTooLargeError,
        kafka.NotEnoughReplicasError,
        kafka.PolicyViolationError,
        kafka.RecordListTooLargeError,
        kafka.TopicAuthorizationFailedError,
        kafka.TransactionalIdAuthorizationFailed,
        kafka.UnsupportedForMessageFormatError,
        kafka.UnsupportedVersionError,
    )
)


def produce_error(code: int) -> type[Exception] | None:
    """The exception class of a Produce error code, None for success."""
    if code == 0:
        return None
    return _UNKNOWN_TO_AIOKAFKA.get(code) or kafka.for_code(code)


def may_be_written(error_class: type[Exception]) -> bool:
    """True if the broker may have stored the batch although it reported this error."""
    return error_class not in _REFUSED_BEFORE_APPEND


def refusal(error_class: type[Exception], topic: str) -> ProxyError:
    """The proxy's error for the final response of a broker."""
    if error_class is kafka.TopicAuthorizationFailedError:
        return NotAuthorized(f"Not authorized to access topic {topic}.")
    if error_class is InvalidRecord:
        return KafkaBadRequest(
            f"The broker rejected a record for {topic} as invalid (INVALID_RECORD). "
            "A topic with cleanup.policy=compact requires a key in every record."
        )
    if issubclass(error_class, IDENTITY_LOST):
        return KafkaRetriable(
            f"The broker rejected the producer id of the batch ({error_class.__name__}). Send the request again."
        )
    error = error_class()
    if error_class in (kafka.NotEnoughReplicasError, kafka.NotEnoughReplicasAfterAppendError):
        return KafkaRetriable(f"Too few replicas of {topic} are in sync.")
    return proxy_error(error)
