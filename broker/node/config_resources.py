"""Changes to config resources, for AlterConfigs and IncrementalAlterConfigs.

A resource is a topic, this broker, all brokers, or the loggers of this broker. Each resource succeeds or fails
independently. Group and client-metrics resources exist, but have no configs in this broker.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from headgate.broker.node import loggers
from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import code_of, refusal_of
from headgate.broker.node.topic_creation import report_compaction
from headgate.broker.protocol.outcomes import Answer, Refusal, clipped
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import Work
from headgate.broker.state.configs.alterations import Alteration, Operation, altered
from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.effective import check_topic_overrides, topic_default
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import InvalidConfig, text_of
from headgate.broker.state.settings import Scope
from headgate.broker.state.topic_names import topic_name_fault


class ResourceType(enum.IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """The requested change of one resource: replace all configs, or alter some of them."""

    resource_type: int
    resource_name: str
    alterations: Sequence[tuple[str, int, str | None]]
    replaces_all: bool


def change_resources(broker: Broker, changes: Sequence[ResourceChange], *, validate_only: bool) -> Work[Answer]:
    """Apply or validate the changes. The response lists a result per resource, in the order of the request."""
    times = Counter((change.resource_type, change.resource_name) for change in changes)
    answers: list[dict[str, object]] = []
    for change in changes:
        yield
        code, message = ErrorCode.none, None
        try:
            if times[change.resource_type, change.resource_name] > 1:
                raise Refusal(ErrorCode.invalid_request, "Each resource must appear at most once.")
            _change(broker, change, validate_only=validate_only)
        except Refusal as refusal:
            code, message = refusal.code, refusal.message
        except StorageError as error:
            code, message = code_of(error), str(error)
        answers.append(
            {
                "error_code": code,
                "error_message": clipped(message),
                "resource_type": change.resource_type,
                "resource_name": change.resource_name,
            }
        )
    return {"responses": answers}


def _change(broker: Broker, change: ResourceChange, *, validate_only: bool) -> None:
    alterations = _checked(change)
    match change.resource_type:
        case ResourceType.TOPIC:
            _change_topic(broker, change, alterations, validate_only=validate_only)
        case ResourceType.BROKER:
            _change_broker(broker, change, alterations, validate_only=validate_only)
        case ResourceType.BROKER_LOGGER if not change.replaces_all:
            _change_loggers(broker, change.resource_name, alterations, validate_only=validate_only)
        case ResourceType.CLIENT_METRICS:
            _refuse_each(alterations, ErrorCode.invalid_request, "Unknown client metrics configuration: ")
        case ResourceType.GROUP:
            if not change.resource_name:
                raise Refusal(ErrorCode.invalid_request, "Default group resources are not allowed.")
            _refuse_each(alterations, ErrorCode.invalid_config, "Unknown group config name: ")
        case _:
            raise Refusal(ErrorCode.invalid_request, f"Unknown resource type {change.resource_type}")


def _checked(change: ResourceChange) -> list[Alteration]:
    names = [name for name, _, _ in change.alterations]
    if len(set(names)) < len(names):
        raise Refusal(ErrorCode.invalid_request, "Error due to duplicate config keys")
    operations = {operation.value for operation in Operation}
    for _, operation, _ in change.alterations:
        if operation not in operations:
            raise Refusal(ErrorCode.invalid_request, f"Unknown config operation {operation}")
    nulls = [name for name, operation, value in change.alterations if value is None and operation != Operation.DELETE]
    if nulls:
        raise Refusal(ErrorCode.invalid_request, f"Null value not supported for : {','.join(nulls)}")
    return [Alteration(name, Operation(operation), value) for name, operation, value in change.alterations]


def _change_topic(
    broker: Broker, change: ResourceChange, alterations: Iterable[Alteration], *, validate_only: bool
) -> None:
    name = change.resource_name
    topic = broker.topics.find(name)
    before = {} if change.replaces_all or topic is None else topic.overrides
    broker_values = broker.settings.values

    def default_text(config: str) -> str | None:
        return text_of(topic_default(TOPIC_CONFIGS[config], broker_values))

    # As in Kafka, check last whether the topic exists.
    try:
        after = altered(TOPIC_CONFIGS, before, alterations, default_text)
        _check_topic_name(name)
        check_topic_overrides(broker_values, after)
    except InvalidConfig as error:
        raise refusal_of(error) from error
    if topic is None:
        raise Refusal(ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    if not validate_only and after != dict(topic.overrides):
        broker.set_topic_overrides(topic, after)
        report_compaction(broker, topic)


def _check_topic_name(name: str) -> None:
    if not name:
        raise Refusal(ErrorCode.invalid_request, "Default topic resources are not allowed.")
    fault = topic_name_fault(name)
    if fault is not None:
        raise Refusal(ErrorCode.invalid_topic_exception, fault)


def _change_broker(
    broker: Broker, change: ResourceChange, alterations: Iterable[Alteration], *, validate_only: bool
) -> None:
    scope = Scope.ALL_BROKERS if not change.resource_name else Scope.THIS_BROKER
    if scope is Scope.THIS_BROKER:
        _check_node_id(broker, change.resource_name, "Unexpected broker id, expected {}, but received {}")
    settings = broker.settings
    current = settings.dynamic(scope)
    before: Mapping[str, str] = {} if change.replaces_all else current

    def default_text(config: str) -> str | None:
        return text_of(settings.values[config])

    try:
        after = altered(BROKER_CONFIGS, before, alterations, default_text)
    except InvalidConfig as error:
        raise refusal_of(error) from error
    try:
        settings.check(after)
        if not validate_only and after != dict(current):
            broker.set_broker_overrides(scope, after)
    except InvalidConfig as error:
        raise Refusal(ErrorCode.invalid_request, str(error)) from error


def _change_loggers(
    broker: Broker, resource_name: str, alterations: Sequence[Alteration], *, validate_only: bool
) -> None:
    _check_node_id(broker, resource_name, "Unexpected node id. Expected {}, but received {}")
    known = set(loggers.logger_names())
    for alteration in alterations:
        name, operation = alteration.name, alteration.operation
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            raise Refusal(
                ErrorCode.invalid_request,
                f"{operation.name} operation is not allowed for the BROKER_LOGGER resource",
            )
        if name not in known:
            raise Refusal(ErrorCode.invalid_config, f"Logger {name} does not exist!")
        if operation is Operation.DELETE and name == loggers.ROOT:
            raise Refusal(ErrorCode.invalid_request, "Removing the log level of the root logger is not allowed")
        if operation is Operation.SET and alteration.value not in loggers.LEVELS:
            raise Refusal(
                ErrorCode.invalid_config,
                f"Cannot set the log level of {name} to {alteration.value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(loggers.LEVELS)}",
            )
    if not validate_only:
        for alteration in alterations:
            loggers.set_level(alteration.name, alteration.value if alteration.operation is Operation.SET else None)


def _check_node_id(broker: Broker, text: str, unexpected: str) -> None:
    number = node_id(text)
    if number is None:
        raise Refusal(ErrorCode.invalid_request, f"Node id must be an integer, but it is: {text}")
    if number != broker.node_id:
        raise Refusal(ErrorCode.invalid_request, unexpected.format(broker.node_id, number))


def node_id(text: str) -> int | None:
    """Return the node id in a resource name, or None if the name is not a number."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else None


def _refuse_each(alterations: Iterable[Alteration], code: ErrorCode, prefix: str) -> None:
    """Refuse every alteration except DELETE, which has no effect."""
    for alteration in alterations:
        if alteration.operation is not Operation.DELETE:
            raise Refusal(code, prefix + alteration.name)
