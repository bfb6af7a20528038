"""Brokers, topics, partitions and replicas (Metadata). Creates, deletes and expands topics.

The controller applies a change, and the brokers receive it shortly afterwards. The functions of this module return
after a broker has received the change, so that the next request sees it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import KafkaClientError, PartitionNotFound, ResourceNotFound, broker_error, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api

# Kafka's limit for topic names.
name_characters_max: Final = 249
# Limits the wait until the brokers receive a change. The controller has already applied it.
propagation_attempts_max: Final = 30
propagation_pause_seconds: Final = 0.1
_NOT_TOLD: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class Partition:
    index: int
    leader: int
    """-1 if the partition has no leader."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    authorized_operations: tuple[int, ...] = ()
    """Kafka's operation codes. Empty if they were not requested or the cluster has no authorizer."""

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)

    def partition(self, index: int) -> Partition:
        for partition in self.partitions:
            if partition.index == index:
                return partition
        error = PartitionNotFound()
        error.subject = f"partition {index} of topic {self.name}"
        raise error


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str
    controller: int | None
    brokers: tuple[Broker, ...]

    def broker(self, broker_id: int) -> Broker:
        for broker in self.brokers:
            if broker.id == broker_id:
                return broker
        raise ResourceNotFound(f"Broker {broker_id} cannot be found.")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """None selects the default of the cluster. Assignments determine both numbers."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] | None = None


async def describe_cluster(client: RequestClient) -> ClusterView:
    answer = await client.send(Api.METADATA, {"topics": [], "allow_auto_topic_creation": False})
    brokers = [Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
    controller = None if answer.controller_id < 0 else int(answer.controller_id)
    return ClusterView(answer.cluster_id or "", controller, tuple(sorted(brokers, key=lambda each: each.id)))


async def list_topics(client: RequestClient, *, with_operations: bool = False) -> list[Topic]:
    answer = await client.send(
        Api.METADATA,
        {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": with_operations,
        },
    )
    return sorted((_topic(topic) for topic in answer.topics), key=lambda topic: topic.name)


async def find_topic(client: RequestClient, name: str, *, with_operations: bool = False) -> Topic:
    """Never creates a topic. Raises TopicNotFound."""
    return (await find_topics(client, [name], with_operations=with_operations))[name]


async def find_topics(
    client: RequestClient, names: Sequence[str], *, with_operations: bool = False, missing_ok: bool = False
) -> dict[str, Topic]:
    """Raises TopicNotFound unless `missing_ok`."""
    if not names:
        return {}
    for name in names:
        if not missing_ok and not 0 < len(name) <= name_characters_max:
            raise _no_topic(name)
    answer = await client.send(
        Api.METADATA,
        {
            "topics": [{"name": name} for name in names],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": with_operations,
        },
    )
    found: dict[str, Topic] = {}
    for topic in answer.topics:
        # No topic can have an invalid name.
        if topic.error_code in (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception):
            if missing_ok:
                continue
            raise _no_topic(topic.name)
        # The topic exists, and its leaders are being elected.
        if topic.error_code is not ErrorCode.leader_not_available:
            check(topic.error_code, None, f"topic {topic.name}")
        found[topic.name] = _topic(topic)
    return found


async def create_topic(client: RequestClient, wanted: NewTopic, *, validate_only: bool) -> tuple[int, int]:
    """Returns the partition count and the replication factor of the topic. Both are 0 if an old broker omits them."""
    request = {
        "name": wanted.name,
        "num_partitions": -1 if wanted.partitions is None else wanted.partitions,
        "replication_factor": -1 if wanted.replication_factor is None else wanted.replication_factor,
        "assignments": [
            {"partition_index": index, "broker_ids": list(brokers)}
            for index, brokers in (wanted.assignments or {}).items()
        ],
        "configs": [{"name": name, "value": value} for name, value in (wanted.configs or {}).items()],
    }
    answer = await client.send(
        Api.CREATE_TOPICS,
        {"topics": [request], "timeout": client.request_timeout_ms, "validate_only": validate_only},
    )
    (result,) = answer.topics
    if result.error_code is ErrorCode.topic_already_exists:
        check(result.error_code, f"Topic '{wanted.name}' already exists.", f"topic {wanted.name}")
    check(result.error_code, result.error_message, f"topic {wanted.name}")
    if not validate_only:
        await _propagated(client, wanted.name, 1)
    return max(getattr(result, "num_partitions", 0), 0), max(getattr(result, "replication_factor", 0), 0)


async def delete_topic(client: RequestClient, name: str) -> None:
    """Raises TopicNotFound."""
    if len(name) > name_characters_max:
        raise _no_topic(name)
    answer = await client.send(Api.DELETE_TOPICS, {"topic_names": [name], "timeout": client.request_timeout_ms})
    for result in answer.responses:
        if result.error_code is ErrorCode.invalid_topic_exception:
            raise _no_topic(name)
        check(result.error_code, getattr(result, "error_message", None), f"topic {name}")
    await _propagated(client, name, 0)


async def add_partitions(client: RequestClient, name: str, total: int, *, validate_only: bool = False) -> None:
    """Raises TopicNotFound, InvalidRequest."""
    answer = await client.send(
        Api.CREATE_PARTITIONS,
        {
            "topics": [{"name": name, "count": total, "assignments": None}],
            "timeout": client.request_timeout_ms,
            "validate_only": validate_only,
        },
    )
    for result in answer.results:
        check(result.error_code, result.error_message, f"topic {name}")
    if not validate_only:
        await _propagated(client, name, total)


async def _propagated(client: RequestClient, name: str, partitions: int) -> None:
    """Waits until a broker reports this number of partitions with leaders. 0 waits until the topic is deleted."""
    for _ in range(propagation_attempts_max):
        topic = (await find_topics(client, [name], missing_ok=True)).get(name)
        led = 0 if topic is None else sum(partition.leader >= 0 for partition in topic.partitions)
        if topic is None if partitions == 0 else topic is not None and led == max(len(topic.partitions), partitions):
            return
        await asyncio.sleep(propagation_pause_seconds)


def _no_topic(name: str) -> KafkaClientError:
    return broker_error(ErrorCode.unknown_topic_or_partition, None, f"topic {name}")


def _topic(topic: Any) -> Topic:
    partitions = [
        Partition(each.partition_index, each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes))
        for each in topic.partitions
    ]
    mask = getattr(topic, "topic_authorized_operations", _NOT_TOLD)
    operations = () if mask == _NOT_TOLD else tuple(bit for bit in range(31) if mask >> bit & 1)
    return Topic(
        topic.name,
        bool(topic.is_internal),
        tuple(sorted(partitions, key=lambda each: each.index)),
        operations,
    )
