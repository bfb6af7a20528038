"""DescribeConfigs (32), versions 1-4: every config of a resource with its value, source, synonyms and documentation.

An unknown name among the asked ones is left out, no names mean all. Broker `""` shows what was altered for all brokers.

Deviations:
- The broker's configs are those that mean something here: those of replication, the controller quorum, tiered storage,
  share and streams groups, SASL, TLS and quotas are not listed.
- `headgate.` configs are listed that Kafka lacks.
- These defaults differ: group.initial.rebalance.delay.ms is 0, offsets.topic.replication.factor is 1,
  group.coordinator.rebalance.protocols is `classic`.
- min.insync.replicas is an ordinary config; a Kafka with eligible leader replicas (KIP-966) keeps it for all brokers.
- Groups and client metrics have no configs yet: their list is empty.
- Loggers carry this broker's module names.
- The documentation is in our words.
- One answer holds at most 200,000 configs (6,000 topics in full); the resources past it get POLICY_VIOLATION.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from broker import loggers
from broker.config_resources import ResourceType, node_id
from broker.context import RequestContext
from broker.protocol.entities import Answer, Request
from broker.protocol.messages import clipped
from broker.refusal import Refusal
from broker.state.configs.describing import ConfigEntry, Source, broker_entries, cluster_entries, topic_entries
from broker.state.topic_names import topic_name_fault

if TYPE_CHECKING:
    from broker.broker import Broker

API_KEY = 32
VERSIONS = range(1, 5)

CONFIGS_MAX = 200_000
"""A few bytes of request ask for a hundred configs, so the answer needs a bound of its own."""

MALFORMED = "The type of the resource is unknown to this broker: the request is malformed or of a newer client."


def handle(broker: "Broker", context: RequestContext, request: Request) -> Answer:
    with_synonyms = request.include_synonyms
    with_documentation = getattr(request, "include_documentation", False)
    results: list[dict[str, object]] = []
    left = CONFIGS_MAX
    for resource in request.resources:
        resource_type, name = int(resource.resource_type), resource.resource_name
        # Kafka reads an empty list as "all" too.
        wanted = frozenset(resource.configuration_keys or ()) or None
        code, message, configs = ErrorCode.none, "", []
        try:
            if left <= 0:
                raise Refusal(ErrorCode.policy_violation, "Too many configs for one answer: ask in smaller requests.")
            configs = [
                config
                for config in _describe(broker, resource_type, name, with_synonyms, with_documentation)
                if wanted is None or config["name"] in wanted
            ]
            left -= len(configs)
        except Refusal as refusal:
            code, message = refusal.code, clipped(refusal.message or "")
        results.append(
            {
                "error_code": code,
                "error_message": message,
                "resource_type": resource_type,
                "resource_name": name,
                "configs": configs,
            }
        )
    return {"results": results}


def _describe(
    broker: "Broker", resource_type: int, name: str, with_synonyms: bool, with_documentation: bool
) -> Iterator[dict[str, object]]:
    match resource_type:
        case ResourceType.BROKER_LOGGER:
            return _loggers(broker, name)
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise Refusal(ErrorCode.invalid_request, "Client metrics subscription name must not be empty")
            return iter(())
        case ResourceType.GROUP:
            if not name:
                raise Refusal(ErrorCode.invalid_request, "Group name must not be empty")
            return iter(())
    return (_config(entry, with_synonyms, with_documentation) for entry in _entries(broker, resource_type, name))


def _entries(broker: "Broker", resource_type: int, name: str) -> Iterable[ConfigEntry]:
    if resource_type == ResourceType.TOPIC:
        fault = topic_name_fault(name)
        if fault is not None:
            raise Refusal(ErrorCode.invalid_topic_exception, fault)
        topic = broker.topics.find(name)
        if topic is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, None)
        return topic_entries(broker.settings, topic.overrides)
    if resource_type == ResourceType.BROKER:
        if not name:
            return cluster_entries(broker.settings)
        _check_broker_id(broker, name, " or empty string,")
        return broker_entries(broker.settings)
    raise Refusal(ErrorCode.invalid_request, MALFORMED)


def _check_broker_id(broker: "Broker", name: str, also: str) -> None:
    number = node_id(name)
    if number is None:
        raise Refusal(ErrorCode.invalid_request, f"Broker id must be an integer, but it is: {name}")
    if number != broker.node_id:
        raise Refusal(
            ErrorCode.invalid_request, f"Unexpected broker id, expected {broker.node_id}{also} but received {number}"
        )


def _config(entry: ConfigEntry, with_synonyms: bool, with_documentation: bool) -> dict[str, object]:
    definition = entry.definition
    synonyms = entry.synonyms if with_synonyms else ()
    return {
        "name": definition.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": entry.source.value,
        "is_sensitive": definition.sensitive,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": synonym.source.value} for synonym in synonyms
        ],
        "config_type": definition.type.value,
        "documentation": definition.documentation if with_documentation else None,
    }


def _loggers(broker: "Broker", name: str) -> Iterator[dict[str, object]]:
    if not name:
        raise Refusal(ErrorCode.invalid_request, "Broker id must not be empty")
    _check_broker_id(broker, name, "")
    return (
        {
            "name": logger,
            "value": loggers.level_of(logger),
            "read_only": False,
            "config_source": Source.DYNAMIC_BROKER_LOGGER_CONFIG.value,
            "is_sensitive": False,
            "synonyms": [],
        }
        for logger in loggers.logger_names()
    )
