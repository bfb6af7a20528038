"""DescribeConfigs v1-4: Returns the configs of resources with values, sources, synonyms and documentation.

Unknown config names are omitted. No names select all configs. Broker `""` selects the configs for all brokers. If one
resource has an unknown type, no resource is described, as in Kafka.

Deviations:
- The configs of a broker
  Kafka: All configs.
  Headgate: No configs of replication, controller quorum, tiered storage, share and streams groups, SASL, TLS, quotas
  and log cleaner. Additional `headgate.` configs.
- Default of `group.initial.rebalance.delay.ms`
  Kafka: 3000
  Headgate: 0
- Default of `offsets.topic.replication.factor`
  Kafka: 3
  Headgate: 1
- Default of `group.coordinator.rebalance.protocols`
  Kafka: `classic,consumer,streams`
  Headgate: `classic`
- Default of `socket.listen.backlog.size`
  Kafka: 50
  Headgate: 1024
- Default of `fetch.max.bytes`
  Kafka: 55 MiB
  Headgate: 4 MiB. Clients process a response when it is complete, so smaller responses reduce latency.
- `min.insync.replicas` with eligible leader replicas (KIP-966)
  Kafka: Stores the config for all brokers.
  Headgate: An ordinary config.
- Configs of groups and client metrics
  Kafka: Lists them.
  Headgate: None.
- Logger names
  Kafka: Java classes.
  Headgate: Python modules.
- Documentation of a config
  Kafka: Kafka's text.
  Headgate: Headgate's text.
- More than 100,000 configs in one response (about 3,000 topics)
  Kafka: Returns all configs.
  Headgate: POLICY_VIOLATION for the remaining resources.
"""

from collections.abc import Callable, Iterable

from kio.schema.errors import ErrorCode

from headgate.broker.node import loggers
from headgate.broker.node.broker import Broker
from headgate.broker.node.config_resources import ResourceType, node_id
from headgate.broker.protocol.outcomes import Answer, Refusal, clipped
from headgate.broker.protocol.request_shapes import DescribeConfigsRequest, RequestContext
from headgate.broker.state.configs.describing import ConfigEntry, Source, broker_entries, cluster_entries, topic_entries
from headgate.broker.state.settings import Scope
from headgate.broker.state.topic_names import topic_name_fault

API_KEY = 32
VERSIONS = range(1, 5)

CONFIGS_MAX = 100_000
"""Limit on the configs in one response. A few bytes of a request can select a hundred configs."""

MALFORMED = "A type of resource is unknown to this broker: the request is malformed or of a newer client."

_TYPES = frozenset(int(known) for known in ResourceType)


def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest) -> Answer:
    describing = _Describing(broker, request.include_synonyms, request.include_documentation)
    results: list[dict[str, object]] = []
    left = CONFIGS_MAX
    are_types_known = all(int(resource.resource_type) in _TYPES for resource in request.resources)
    for resource in request.resources:
        resource_type, name = int(resource.resource_type), resource.resource_name
        # As in Kafka, an empty list selects all configs.
        wanted = frozenset(resource.configuration_keys or ()) or None
        code, message, configs = ErrorCode.none, "", []
        try:
            if not are_types_known:
                raise Refusal(ErrorCode.invalid_request, MALFORMED)
            if left <= 0:
                raise Refusal(ErrorCode.policy_violation, "Too many configs for one answer: ask in smaller requests.")
            configs = [
                config
                for config in describing.configs(resource_type, name)
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


class _Describing:
    """Describes the resources of one request. Topics with the same overrides share one description."""

    def __init__(self, broker: Broker, with_synonyms: bool, with_documentation: bool) -> None:
        self._broker = broker
        self._with_synonyms = with_synonyms
        self._with_documentation = with_documentation
        self._known: dict[object, list[dict[str, object]]] = {}

    def configs(self, resource_type: int, name: str) -> list[dict[str, object]]:
        """Return the configs of a resource. Raises Refusal."""
        broker = self._broker
        match resource_type:
            case ResourceType.TOPIC:
                return self._topic(name)
            case ResourceType.BROKER if not name:
                return self._shared(Scope.ALL_BROKERS, lambda: self._listed(cluster_entries(broker.settings)))
            case ResourceType.BROKER:
                _check_broker_id(broker, name, " or empty string,")
                return self._shared(Scope.THIS_BROKER, lambda: self._listed(broker_entries(broker.settings)))
            case ResourceType.BROKER_LOGGER:
                if not name:
                    raise Refusal(ErrorCode.invalid_request, "Broker id must not be empty")
                _check_broker_id(broker, name, "")
                return self._shared(ResourceType.BROKER_LOGGER, _loggers)
            case ResourceType.CLIENT_METRICS:
                if not name:
                    raise Refusal(ErrorCode.invalid_request, "Client metrics subscription name must not be empty")
                return []
            case ResourceType.GROUP:
                if not name:
                    raise Refusal(ErrorCode.invalid_request, "Group name must not be empty")
                return []
        raise Refusal(ErrorCode.invalid_request, MALFORMED)

    def _topic(self, name: str) -> list[dict[str, object]]:
        fault = topic_name_fault(name)
        if fault is not None:
            raise Refusal(ErrorCode.invalid_topic_exception, fault)
        topic = self._broker.topics.find(name)
        if topic is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, None)
        overrides = topic.overrides
        key = tuple(sorted(overrides.items()))
        return self._shared(key, lambda: self._listed(topic_entries(self._broker.settings, overrides)))

    def _shared(self, key: object, describe: Callable[[], list[dict[str, object]]]) -> list[dict[str, object]]:
        if key not in self._known:
            self._known[key] = describe()
        return self._known[key]

    def _listed(self, entries: Iterable[ConfigEntry]) -> list[dict[str, object]]:
        return [_config(entry, self._with_synonyms, self._with_documentation) for entry in entries]


def _check_broker_id(broker: Broker, name: str, also: str) -> None:
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
        "is_sensitive": False,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": synonym.source.value} for synonym in synonyms
        ],
        "config_type": definition.type.value,
        "documentation": definition.documentation if with_documentation else None,
    }


def _loggers() -> list[dict[str, object]]:
    return [
        {
            "name": logger,
            "value": loggers.level_of(logger),
            "read_only": False,
            "config_source": Source.DYNAMIC_BROKER_LOGGER_CONFIG.value,
            "is_sensitive": False,
            "synonyms": [],
        }
        for logger in loggers.logger_names()
    ]
