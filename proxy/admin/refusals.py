"""Kafka's error codes in answers, as the proxy's errors: the one table for what `proxy.admin` asks."""

from collections.abc import Callable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from headgate.proxy.errors import (
    BrokerUnavailable,
    GroupNotFound,
    IllegalState,
    KafkaBadRequest,
    KafkaFailed,
    KafkaRetriable,
    LeaderNotFound,
    NotAuthenticated,
    NotAuthorized,
    ProxyError,
    ResourceNotFound,
    TooManyRequests,
    TopicNotFound,
)


class Unsettled(KafkaRetriable):
    """A coordinator or leader that is not there yet."""


_KINDS: Final[Mapping[ErrorCode, Callable[[str], ProxyError]]] = {
    ErrorCode.unknown_topic_or_partition: lambda _: TopicNotFound(),
    ErrorCode.unknown_topic_id: lambda _: TopicNotFound(),
    ErrorCode.invalid_topic_exception: KafkaBadRequest,
    ErrorCode.topic_already_exists: KafkaBadRequest,
    ErrorCode.invalid_partitions: KafkaBadRequest,
    ErrorCode.invalid_replication_factor: KafkaBadRequest,
    ErrorCode.invalid_replica_assignment: KafkaBadRequest,
    ErrorCode.invalid_config: KafkaBadRequest,
    ErrorCode.invalid_request: KafkaBadRequest,
    ErrorCode.policy_violation: KafkaBadRequest,
    ErrorCode.unsupported_version: KafkaBadRequest,
    ErrorCode.security_disabled: KafkaBadRequest,
    ErrorCode.invalid_principal_type: KafkaBadRequest,
    ErrorCode.topic_deletion_disabled: KafkaBadRequest,
    ErrorCode.offset_out_of_range: KafkaBadRequest,
    ErrorCode.invalid_timestamp: KafkaBadRequest,
    ErrorCode.message_too_large: KafkaBadRequest,
    ErrorCode.invalid_group_id: KafkaBadRequest,
    ErrorCode.group_id_not_found: GroupNotFound,
    ErrorCode.non_empty_group: IllegalState,
    ErrorCode.group_subscribed_to_topic: IllegalState,
    ErrorCode.unknown_member_id: IllegalState,
    ErrorCode.illegal_generation: IllegalState,
    ErrorCode.resource_not_found: ResourceNotFound,
    ErrorCode.broker_id_not_registered: ResourceNotFound,
    ErrorCode.leader_not_available: LeaderNotFound,
    ErrorCode.coordinator_not_available: Unsettled,
    ErrorCode.coordinator_load_in_progress: Unsettled,
    ErrorCode.not_coordinator: Unsettled,
    ErrorCode.not_leader_or_follower: Unsettled,
    ErrorCode.offset_not_available: Unsettled,
    ErrorCode.broker_not_available: BrokerUnavailable,
    ErrorCode.throttling_quota_exceeded: TooManyRequests,
    ErrorCode.sasl_authentication_failed: NotAuthenticated,
    ErrorCode.topic_authorization_failed: NotAuthorized,
    ErrorCode.group_authorization_failed: NotAuthorized,
    ErrorCode.cluster_authorization_failed: NotAuthorized,
}


def refusal(code: ErrorCode, message: str | None, subject: str) -> ProxyError:
    """Kafka's own message where it sent one; else its name of the code, of what."""
    text = message or f"{subject}: {code.name.upper()}"
    error = _KINDS.get(code, KafkaRetriable if code.retriable else KafkaFailed)(text)
    error.subject, error.kafka_code, error.kafka_message = subject, code, message
    return error


def check(code: ErrorCode, message: str | None, subject: str) -> None:
    """Raises the ProxyError for a code, unless all went well."""
    if code is not ErrorCode.none:
        raise refusal(code, message, subject)
