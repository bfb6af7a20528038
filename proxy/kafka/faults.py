"""Kafka's errors, as aiokafka raises them, in the proxy's own words: the only place that knows both."""

from aiokafka import errors as kafka

from headgate.proxy.errors import (
    BrokerUnavailable,
    GroupNotFound,
    KafkaBadRequest,
    KafkaFailed,
    KafkaRetriable,
    LeaderNotFound,
    NotAuthenticated,
    NotAuthorized,
    ProxyError,
    TopicNotFound,
)

_UNAVAILABLE = (kafka.KafkaConnectionError, kafka.NodeNotReadyError, kafka.StaleMetadata, kafka.ProducerClosed)
_BAD_REQUEST = (
    kafka.MessageSizeTooLargeError,
    kafka.RecordListTooLargeError,
    kafka.InvalidTopicError,
    kafka.InvalidRequestError,
    kafka.InvalidConfigurationError,
    kafka.InvalidPartitionsError,
    kafka.InvalidReplicationFactorError,
    kafka.InvalidReplicationAssignmentError,
    kafka.TopicAlreadyExistsError,
    kafka.PolicyViolationError,
    kafka.OffsetOutOfRangeError,
    kafka.InvalidTimestampError,
)


def proxy_error(error: BaseException) -> ProxyError:
    """The proxy's error for what Kafka, or the way to it, said."""
    if isinstance(error, ProxyError):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, kafka.UnknownTopicOrPartitionError):
        return TopicNotFound()
    if isinstance(error, (kafka.LeaderNotAvailableError, kafka.NotLeaderForPartitionError)):
        return LeaderNotFound(f"No leader for the partition: {text}")
    if isinstance(error, kafka.AuthenticationFailedError):
        return NotAuthenticated(text)
    if isinstance(
        error,
        (
            kafka.TopicAuthorizationFailedError,
            kafka.GroupAuthorizationFailedError,
            kafka.ClusterAuthorizationFailedError,
        ),
    ):
        return NotAuthorized(text)
    if isinstance(error, kafka.InvalidGroupIdError):
        return GroupNotFound(text)
    if isinstance(error, (*_UNAVAILABLE, ConnectionError, TimeoutError)):
        return BrokerUnavailable(f"No broker answers: {text}. Is the broker running at the bootstrap address?")
    if isinstance(error, kafka.KafkaStorageError):
        return KafkaRetriable("The broker cannot write to its disk, which may be full.")
    if isinstance(error, _BAD_REQUEST):
        return KafkaBadRequest(text)
    if isinstance(error, kafka.KafkaError):
        return KafkaRetriable(text) if error.retriable else KafkaFailed(text)
    return KafkaFailed(text)
