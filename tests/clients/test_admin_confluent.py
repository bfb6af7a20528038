"""The admin calls of confluent-kafka."""

import secrets
from concurrent.futures import Future
from importlib import import_module
from typing import Any, TypeVar

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

from tests.clients.client import T0, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.conftest import MakeTopic
from tests.clients.waiting import eventually

# The library re-exports its C classes without types.
admin: Any = import_module("confluent_kafka.admin")

T = TypeVar("T")
SECONDS_MAX = 30.0


def result(future: Future[T]) -> T:
    return future.result(SECONDS_MAX)


def only(futures: dict[Any, Future[T]]) -> T:
    (future,) = futures.values()
    return result(future)


def fails_with(code: int, futures: dict[Any, Future[Any]]) -> None:
    with pytest.raises(KafkaException) as refused:
        only(futures)
    assert refused.value.args[0].code() == code, refused.value


@pytest.fixture
def adm(broker_address: str) -> Any:
    return admin.AdminClient({"bootstrap.servers": broker_address, "log_level": 0})


@pytest.fixture
def confluent(broker_address: str) -> ConfluentClient:
    return ConfluentClient(broker_address)


def topic_name() -> str:
    return f"admin-{secrets.token_hex(4)}"


def test_topics_are_made_listed_described_and_deleted(adm: Any) -> None:
    name = topic_name()
    only(adm.create_topics([admin.NewTopic(name, 3, 1, config={"retention.ms": "777000"})]))
    fails_with(KafkaError.TOPIC_ALREADY_EXISTS, adm.create_topics([admin.NewTopic(name, 3, 1)]))
    listed = adm.list_topics(timeout=SECONDS_MAX).topics[name]
    assert sorted(listed.partitions) == [0, 1, 2]
    described = only(adm.describe_topics(TopicCollection([name])))
    assert [part.id for part in described.partitions] == [0, 1, 2]
    assert described.topic_id is not None
    assert not described.is_internal
    only(adm.delete_topics([name]))
    eventually(lambda: name not in adm.list_topics(timeout=SECONDS_MAX).topics, "it is gone from the list")
    fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART, adm.delete_topics([name]))


def test_a_trial_of_creation_makes_nothing(adm: Any) -> None:
    name = topic_name()
    only(adm.create_topics([admin.NewTopic(name, 3, 1)], validate_only=True))
    assert name not in adm.list_topics(timeout=SECONDS_MAX).topics


def test_one_bad_topic_does_not_spoil_the_others(adm: Any) -> None:
    good = topic_name()
    made = adm.create_topics(
        [
            admin.NewTopic(good, 1, 1),
            admin.NewTopic("bad name", 1, 1),
            admin.NewTopic(topic_name(), 1, 3),
            admin.NewTopic(topic_name(), 1, 1, config={"retention.ms": "soon"}),
        ]
    )
    codes = []
    for future in made.values():
        error = future.exception(SECONDS_MAX)
        codes.append(None if error is None else error.args[0].code())
    assert codes == [
        None,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_CONFIG,
    ]
    eventually(lambda: good in adm.list_topics(timeout=SECONDS_MAX).topics, "the good one is there")


def test_a_topic_grows_and_its_new_partitions_take_records(
    adm: Any, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    only(adm.create_partitions([admin.NewPartitions(topic, 4)]))
    eventually(lambda: len(adm.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions) == 4, "it has grown")
    confluent.produce(topic, [Sent(b"x", partition=3)])
    assert confluent.bounds(topic, 3) == (0, 1)
    fails_with(KafkaError.INVALID_PARTITIONS, adm.create_partitions([admin.NewPartitions(topic, 2)]))
    fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART, adm.create_partitions([admin.NewPartitions(topic_name(), 2)]))


def configs_of(adm: Any, topic: str) -> Any:
    return only(adm.describe_configs([admin.ConfigResource(admin.ResourceType.TOPIC, topic)]))


def change(adm: Any, topic: str, *changes: tuple[str, str | None, str]) -> None:
    entries = [
        admin.ConfigEntry(name, value, incremental_operation=admin.AlterConfigOpType[operation])
        for name, value, operation in changes
    ]
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=entries)
    only(adm.incremental_alter_configs([resource]))


def test_settings_show_their_defaults_and_change_step_by_step(adm: Any, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="delete")
    configs = configs_of(adm, topic)
    assert configs["retention.ms"].value == "604800000"
    assert configs["retention.ms"].is_default
    assert configs["cleanup.policy"].source == admin.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    change(adm, topic, ("cleanup.policy", "compact", "APPEND"), ("retention.ms", "5000", "SET"))
    eventually(lambda: configs_of(adm, topic)["cleanup.policy"].value == "delete,compact", "compact was added")
    assert configs_of(adm, topic)["retention.ms"].value == "5000"
    change(adm, topic, ("cleanup.policy", "delete", "SUBTRACT"), ("retention.ms", None, "DELETE"))
    eventually(lambda: configs_of(adm, topic)["cleanup.policy"].value == "compact", "delete was taken away")
    assert configs_of(adm, topic)["retention.ms"].value == "604800000"
    with pytest.raises(KafkaException) as refused:
        change(adm, topic, ("retention.ms", "soon", "SET"))
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_the_brokers_settings_are_described(adm: Any) -> None:
    node = result(adm.describe_cluster()).controller.id
    described = only(adm.describe_configs([admin.ConfigResource(admin.ResourceType.BROKER, str(node))]))
    assert described["message.max.bytes"].value == "1048588"
    assert described["auto.create.topics.enable"].value == "true"


def test_the_cluster_is_described(adm: Any, broker_address: str) -> None:
    cluster = result(adm.describe_cluster(include_authorized_operations=True))
    assert cluster.cluster_id
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker_address]
    assert cluster.controller.id == cluster.nodes[0].id
    assert adm.list_topics(timeout=SECONDS_MAX).cluster_id == cluster.cluster_id


def test_records_before_an_offset_are_deleted(adm: Any, confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(f"{i}".encode()) for i in range(10)])
    deleted = only(adm.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    assert confluent.bounds(topic, 0) == (4, 10)
    assert [record.offset for record in confluent.read(topic, 0, 4, 6)] == list(range(4, 10))
    fails_with(KafkaError.OFFSET_OUT_OF_RANGE, adm.delete_records([TopicPartition(topic, 0, 99)]))


def test_offsets_are_listed_by_every_specification(adm: Any, confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(b"x", timestamp=T0 + at) for at in (10, 90, 50)])
    part = TopicPartition(topic, 0)

    def ask(spec: Any, **more: Any) -> int:
        offset: int = only(adm.list_offsets({part: spec}, **more)).offset
        return offset

    assert ask(admin.OffsetSpec.earliest()) == 0
    assert ask(admin.OffsetSpec.latest()) == 3
    assert ask(admin.OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED) == 3
    assert ask(admin.OffsetSpec.max_timestamp()) == 1
    assert ask(admin.OffsetSpec.for_timestamp(T0 + 20)) == 1
    assert ask(admin.OffsetSpec.for_timestamp(T0 + 91)) == -1


def test_groups_are_listed_described_altered_and_deleted(
    adm: Any, confluent: ConfluentClient, topic: str, group: str
) -> None:
    member = confluent.join(group, topic)
    try:
        eventually(lambda: member.assignment() == {0}, "the group is stable")
        eventually(
            lambda: only(adm.describe_consumer_groups([group])).state == ConsumerGroupState.STABLE,
            "it is described as stable",
        )
        described = only(adm.describe_consumer_groups([group]))
        assert described.partition_assignor == "range"
        (seen,) = described.members
        assert [part.partition for part in seen.assignment.topic_partitions] == [0]
        stable = {one.group_id for one in result(adm.list_consumer_groups(states={ConsumerGroupState.STABLE})).valid}
        empty = {one.group_id for one in result(adm.list_consumer_groups(states={ConsumerGroupState.EMPTY})).valid}
        classic = {one.group_id for one in result(adm.list_consumer_groups(types={ConsumerGroupType.CLASSIC})).valid}
        assert group in stable
        assert group not in empty
        assert group in classic
        fails_with(KafkaError.NON_EMPTY_GROUP, adm.delete_consumer_groups([group]))
        placed = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 7)])
        (refused,) = only(adm.alter_consumer_group_offsets([placed])).topic_partitions
        assert refused.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    finally:
        member.close()
    eventually(
        lambda: only(adm.describe_consumer_groups([group])).state == ConsumerGroupState.EMPTY, "the group is empty"
    )
    only(adm.alter_consumer_group_offsets([placed]))
    listed = only(adm.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    assert [(part.topic, part.partition, part.offset) for part in listed.topic_partitions] == [(topic, 0, 7)]
    only(adm.delete_consumer_groups([group]))
    fails_with(KafkaError.GROUP_ID_NOT_FOUND, adm.delete_consumer_groups([group]))
