"""Errors of the Kafka client. Each package maps them to its own interface in one table.

KafkaClientError
├── InvalidProperty         a client property has an invalid value
├── BrokerUnavailable       no broker responds, or the connection is lost
│   └── NodeUnavailable     the broker that must process the request does not respond, but others do
├── NotAuthenticated        the TLS handshake or the SASL authentication failed
├── NotAuthorized           an ACL denies the operation
├── TopicNotFound
├── PartitionNotFound
├── LeaderNotFound          the partition has no leader at the moment
├── GroupNotFound
├── ResourceNotFound        another resource does not exist: a broker, a quota, a config
├── GroupNotEmpty           the group has members, or the member is not in the group
├── InvalidRequest          the broker rejects the request
│   ├── ApiUnsupported      the broker does not support the API
│   ├── ValueTooLong        a string exceeds the protocol's limit
│   └── NothingCommitted    a relative offset, but the group has no committed offset
├── RecordTooLarge          a record or its batch exceeds a limit of this client
├── BufferFull              the producer's buffer is full, or a broker enforces a quota
├── ProducerClosed
├── RetriableError          a broker error that a retry can solve
│   └── NotReady            the coordinator or leader is being elected
└── BrokerError             any other broker error
"""

from collections.abc import Callable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode


class KafkaClientError(Exception):
    """The root of the tree above. The message is for users."""

    subject: str = ""
    """The resource to which the error of the broker applies, such as `topic orders`."""
    kafka_code: ErrorCode | None = None
    kafka_message: str | None = None
    """The error message of the broker, if the response contains one."""


class InvalidProperty(KafkaClientError):
    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class BrokerUnavailable(KafkaClientError):
    address: str = ""
    """The bootstrap servers, if the client has no connection yet."""
    reason: str = ""
    advice: str = ""


class NodeUnavailable(BrokerUnavailable): ...


class NotAuthenticated(KafkaClientError):
    address: str = ""
    reason: str = ""
    advice: str = ""


class NotAuthorized(KafkaClientError): ...


class TopicNotFound(KafkaClientError):
    def __init__(self, message: str = "Topic not found.") -> None:
        super().__init__(message)


class PartitionNotFound(KafkaClientError):
    def __init__(self, message: str = "Partition not found.") -> None:
        super().__init__(message)


class LeaderNotFound(KafkaClientError): ...


class GroupNotFound(KafkaClientError): ...


class ResourceNotFound(KafkaClientError): ...


class GroupNotEmpty(KafkaClientError): ...


class InvalidRequest(KafkaClientError): ...


class ApiUnsupported(InvalidRequest): ...


class ValueTooLong(InvalidRequest): ...


class NothingCommitted(InvalidRequest): ...


class RecordTooLarge(KafkaClientError): ...


class BufferFull(KafkaClientError): ...


class ProducerClosed(KafkaClientError): ...


class RetriableError(KafkaClientError): ...


class NotReady(RetriableError): ...


class BrokerError(KafkaClientError): ...


_KINDS: Final[Mapping[ErrorCode, Callable[[str], KafkaClientError]]] = {
    ErrorCode.unknown_topic_or_partition: lambda _: TopicNotFound(),
    ErrorCode.unknown_topic_id: lambda _: TopicNotFound(),
    ErrorCode.invalid_topic_exception: InvalidRequest,
    ErrorCode.topic_already_exists: InvalidRequest,
    ErrorCode.invalid_partitions: InvalidRequest,
    ErrorCode.invalid_replication_factor: InvalidRequest,
    ErrorCode.invalid_replica_assignment: InvalidRequest,
    ErrorCode.invalid_config: InvalidRequest,
    ErrorCode.invalid_request: InvalidRequest,
    ErrorCode.policy_violation: InvalidRequest,
    ErrorCode.unsupported_version: InvalidRequest,
    ErrorCode.security_disabled: InvalidRequest,
    ErrorCode.invalid_principal_type: InvalidRequest,
    ErrorCode.topic_deletion_disabled: InvalidRequest,
    ErrorCode.offset_out_of_range: InvalidRequest,
    ErrorCode.invalid_timestamp: InvalidRequest,
    ErrorCode.invalid_record: InvalidRequest,
    ErrorCode.message_too_large: InvalidRequest,
    ErrorCode.record_list_too_large: InvalidRequest,
    ErrorCode.invalid_group_id: InvalidRequest,
    ErrorCode.group_id_not_found: GroupNotFound,
    ErrorCode.non_empty_group: GroupNotEmpty,
    ErrorCode.group_subscribed_to_topic: GroupNotEmpty,
    ErrorCode.unknown_member_id: GroupNotEmpty,
    ErrorCode.illegal_generation: GroupNotEmpty,
    ErrorCode.resource_not_found: ResourceNotFound,
    ErrorCode.broker_id_not_registered: ResourceNotFound,
    ErrorCode.leader_not_available: LeaderNotFound,
    ErrorCode.coordinator_not_available: NotReady,
    ErrorCode.coordinator_load_in_progress: NotReady,
    ErrorCode.not_coordinator: NotReady,
    ErrorCode.not_leader_or_follower: NotReady,
    ErrorCode.offset_not_available: NotReady,
    ErrorCode.broker_not_available: BrokerUnavailable,
    ErrorCode.throttling_quota_exceeded: BufferFull,
    ErrorCode.sasl_authentication_failed: NotAuthenticated,
    ErrorCode.topic_authorization_failed: NotAuthorized,
    ErrorCode.group_authorization_failed: NotAuthorized,
    ErrorCode.cluster_authorization_failed: NotAuthorized,
    ErrorCode.transactional_id_authorization_failed: NotAuthorized,
}


def broker_error(code: ErrorCode, message: str | None, subject: str) -> KafkaClientError:
    """Returns the error for a code. Its text is the broker's message, or the subject and the name of the code."""
    text = message or f"{subject}: {code.name.upper()}"
    error = _KINDS.get(code, RetriableError if code.retriable else BrokerError)(text)
    error.subject, error.kafka_code, error.kafka_message = subject, code, message
    return error


def check(code: ErrorCode, message: str | None, subject: str) -> None:
    """Raises `broker_error` unless the code is NONE."""
    if code is not ErrorCode.none:
        raise broker_error(code, message, subject)
