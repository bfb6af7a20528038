"""Topics: what there is, and changing it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kio.schema.errors import ErrorCode

from gateway.kafka.cluster import Cluster, request_timeout_ms
from gateway.kafka.errors import ApiMissing, UnknownTopic, check
from gateway.kafka.messages import Api

TOPIC_RESOURCE = 2


class ConfigSource(IntEnum):
    """Where a config's value comes from; Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Partition:
    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    internal: bool
    partitions: tuple[Partition, ...]

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    value: str | None
    source: int
    default: str | None
    """What holds when the topic does not set it; None where the cluster does not say."""
    sensitive: bool
    read_only: bool

    @property
    def overridden(self) -> bool:
        return self.source == ConfigSource.TOPIC


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    operation: ConfigOperation
    value: str | None


async def list_topics(cluster: Cluster) -> list[Topic]:
    answer = await cluster.ask(Api.METADATA, {"topics": None, "allow_auto_topic_creation": False})
    return sorted((_topic(topic) for topic in answer.topics), key=lambda topic: topic.name)


async def find_topics(cluster: Cluster, names: Sequence[str]) -> list[Topic]:
    """The named topics, in that order; never creates one. Raises UnknownTopic, Refused."""
    if not names:
        return []
    wanted = [{"name": name} for name in names]
    answer = await cluster.ask(Api.METADATA, {"topics": wanted, "allow_auto_topic_creation": False})
    found: dict[str, Topic] = {}
    for topic in answer.topics:
        if topic.error_code is ErrorCode.unknown_topic_or_partition:
            raise UnknownTopic(topic.name)
        check(f"topic {topic.name}", topic.error_code)
        found[topic.name] = _topic(topic)
    return [found[name] for name in names]


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, str],
    validate_only: bool,
) -> None:
    """None leaves the number to the cluster's defaults."""
    wanted = {
        "name": name,
        "num_partitions": -1 if partitions is None else partitions,
        "replication_factor": -1 if replication_factor is None else replication_factor,
        "configs": [{"name": config, "value": value} for config, value in configs.items()],
    }
    request = {"topics": [wanted], "timeout": request_timeout_ms, "validate_only": validate_only}
    answer = await cluster.ask(Api.CREATE_TOPICS, request, cluster.controller())
    for result in answer.topics:
        check(f"topic {name}", result.error_code, result.error_message)


async def delete_topic(cluster: Cluster, name: str) -> None:
    request = {"topic_names": [name], "timeout": request_timeout_ms}
    answer = await cluster.ask(Api.DELETE_TOPICS, request, cluster.controller())
    for result in answer.responses:
        if result.error_code is ErrorCode.unknown_topic_or_partition:
            raise UnknownTopic(name)
        check(f"topic {name}", result.error_code, getattr(result, "error_message", None))


async def add_partitions(cluster: Cluster, name: str, total: int, *, validate_only: bool) -> None:
    wanted = {"name": name, "count": total, "assignments": None}
    request = {"topics": [wanted], "timeout": request_timeout_ms, "validate_only": validate_only}
    answer = await cluster.ask(Api.CREATE_PARTITIONS, request, cluster.controller())
    for result in answer.results:
        check(f"topic {name}", result.error_code, result.error_message)


async def describe_configs(cluster: Cluster, name: str) -> list[Config]:
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}
    answer = await cluster.ask(Api.DESCRIBE_CONFIGS, {"resources": [resource], "include_synonyms": True})
    configs: list[Config] = []
    for result in answer.results:
        check(f"topic {name}", result.error_code, result.error_message)
        configs.extend(_config(config) for config in result.configs)
    return sorted(configs, key=lambda config: config.name)


async def alter_configs(cluster: Cluster, name: str, changes: Iterable[ConfigChange], *, validate_only: bool) -> None:
    resource = {
        "resource_type": TOPIC_RESOURCE,
        "resource_name": name,
        "configs": [
            {"name": change.name, "config_operation": int(change.operation), "value": change.value}
            for change in changes
        ],
    }
    request = {"resources": [resource], "validate_only": validate_only}
    answer = await cluster.ask(Api.INCREMENTAL_ALTER_CONFIGS, request)
    for result in answer.responses:
        check(f"topic {name}", result.error_code, result.error_message)


async def partition_sizes(cluster: Cluster, topics: Sequence[Topic] | None = None) -> dict[tuple[str, int], int]:
    """Bytes on disk by topic and partition, of the largest replica; empty where the cluster does not tell."""
    wanted = None
    if topics is not None:
        wanted = [{"topic": topic.name, "partitions": [each.index for each in topic.partitions]} for topic in topics]
    sizes: dict[tuple[str, int], int] = {}
    for node in cluster.nodes():
        try:
            answer = await cluster.ask(Api.DESCRIBE_LOG_DIRS, {"topics": wanted}, node)
        except ApiMissing:
            return {}
        for directory in answer.results:
            for topic in directory.topics:
                for partition in topic.partitions:
                    place = (topic.name, partition.partition_index)
                    sizes[place] = max(sizes.get(place, 0), partition.partition_size)
    return sizes


def _topic(topic: Any) -> Topic:
    partitions = [
        Partition(each.partition_index, each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes))
        for each in topic.partitions
    ]
    return Topic(topic.name, bool(topic.is_internal), tuple(sorted(partitions, key=lambda each: each.index)))


def _config(config: Any) -> Config:
    inherited = [synonym.value for synonym in config.synonyms if synonym.source != ConfigSource.TOPIC]
    return Config(
        config.name,
        config.value,
        config.config_source,
        inherited[0] if inherited else None,
        bool(config.is_sensitive),
        bool(config.read_only),
    )
