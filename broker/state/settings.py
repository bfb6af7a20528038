"""The broker configs: set at start under Kafka's names, altered dynamically, read as typed attributes.

An attribute is the config's name with underscores (`settings.num_partitions`). The first of these that has a value
counts: the dynamic config of this broker, the dynamic config of all brokers, the static config, the default. Dynamic
configs are stored in the metadata journal. `broker.state.configs` defines the configs.
"""

import enum
from collections.abc import Callable, Mapping
from typing import TypeAlias

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.definition import Update, parse_all
from headgate.broker.state.configs.effective import effective_topic_settings
from headgate.broker.state.configs.values import InvalidConfig, Value


class Scope(enum.Enum):
    """The scope of dynamic configs: the resource broker `<id>` or broker `""` of DescribeConfigs."""

    THIS_BROKER = "broker"
    ALL_BROKERS = "cluster"


Save: TypeAlias = Callable[[Scope, Mapping[str, str]], None]
"""Stores the dynamic configs of a scope. Raises StorageError."""


class BrokerSettings:
    advertised_listeners: tuple[str, ...] | None
    auto_create_topics_enable: bool
    broker_id: int
    broker_rack: str | None
    connections_max_idle_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    headgate_acks_all_fsync: bool
    headgate_partitions_max: int
    headgate_topic_partitions_max: int
    listeners: tuple[str, ...]
    log_dirs: tuple[str, ...] | None
    log_flush_scheduler_interval_ms: int
    log_retention_check_interval_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    message_max_bytes: int
    node_id: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_ms: int
    queued_max_request_bytes: int
    queued_max_requests: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int

    def __init__(
        self,
        static: Mapping[str, str] | None = None,
        dynamic: Mapping[Scope, Mapping[str, str]] | None = None,
    ) -> None:
        """Raises InvalidConfig if a name is unknown or a value is invalid."""
        self.static: Mapping[str, str] = _with_node_id(dict(static or {}))
        self._dynamic = {scope: dict((dynamic or {}).get(scope, {})) for scope in Scope}
        self.values: Mapping[str, Value] = {}
        self._apply()

    def locate(self, host: str, port: int, data_directory: str) -> None:
        """Set `listeners` and `log.dirs` to the bound address and the data directory."""
        shown_host = f"[{host}]" if ":" in host else host
        self.static = {**self.static, "listeners": f"PLAINTEXT://{shown_host}:{port}", "log.dirs": data_directory}
        self._apply()

    def dynamic(self, scope: Scope) -> Mapping[str, str]:
        return self._dynamic[scope]

    def restore(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        """Apply the dynamic configs of the metadata journal at start. Raises InvalidConfig."""
        self._replace(scope, overrides)

    def alter(self, scope: Scope, overrides: Mapping[str, str], save: Save) -> None:
        """Replace the dynamic configs of the scope: check them, save them, then apply them.

        Raises InvalidConfig, and the errors of `save`. Nothing changes then.
        """
        self.check(overrides)
        save(scope, overrides)
        self._replace(scope, overrides)

    def check(self, overrides: Mapping[str, str]) -> None:
        """Raises InvalidConfig unless `overrides` are valid and dynamic."""
        read_only = sorted(
            name for name in overrides if name in BROKER_CONFIGS and BROKER_CONFIGS[name].update is Update.READ_ONLY
        )
        if read_only:
            raise InvalidConfig(f"Cannot update these configs dynamically: [{', '.join(read_only)}]")
        parse_all(BROKER_CONFIGS, overrides, "broker")

    def topic_settings(self, overrides: Mapping[str, str]) -> TopicSettings:
        """The settings of a topic with these overrides. Raises InvalidConfig."""
        return effective_topic_settings(self.values, overrides)

    def _replace(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        before = self._dynamic[scope]
        self._dynamic[scope] = dict(overrides)
        try:
            self._apply()
        except InvalidConfig:
            self._dynamic[scope] = before
            raise

    def _apply(self) -> None:
        values = {name: definition.default for name, definition in BROKER_CONFIGS.items()}
        for layer in (self.static, self._dynamic[Scope.ALL_BROKERS], self._dynamic[Scope.THIS_BROKER]):
            values.update(parse_all(BROKER_CONFIGS, layer, "broker"))
        self.values = values
        for name, value in values.items():
            setattr(self, BROKER_CONFIGS[name].attribute, value)


def _with_node_id(static: dict[str, str]) -> dict[str, str]:
    """node.id and broker.id are synonyms. Either may be set."""
    if "broker.id" in static:
        static.setdefault("node.id", static["broker.id"])
    if "node.id" in static:
        static.setdefault("broker.id", static["node.id"])
    if static.get("broker.id") != static.get("node.id"):
        raise InvalidConfig("broker.id and node.id must be the same when both are given")
    return static
