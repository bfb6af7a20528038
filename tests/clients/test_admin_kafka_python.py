"""The admin calls of kafka-python."""

import secrets
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.clients.client import T0, Sent
from tests.clients.conftest import MakeTopic
from tests.clients.kafka_python import KafkaPythonClient, errors, structs
from tests.clients.waiting import eventually

# kafka-python has no type annotations, and its import emits a warning on Python 3.11.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    admin: Any = import_module("kafka.admin")


@pytest.fixture
def adm(broker_address: str) -> Iterator[Any]:
    made = admin.KafkaAdminClient(bootstrap_servers=broker_address)
    yield made
    made.close()


@pytest.fixture
def client(broker_address: str) -> KafkaPythonClient:
    return KafkaPythonClient(broker_address)


def part(topic: str, partition: int = 0) -> Any:
    return structs.TopicPartition(topic, partition)


def test_topics_are_made_described_and_deleted(adm: Any) -> None:
    name = f"admin-{secrets.token_hex(4)}"
    adm.create_topics({name: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "777000"}}})
    adm.wait_for_topics([name])
    with pytest.raises(errors.TopicAlreadyExistsError):
        adm.create_topics({name: {"num_partitions": 3, "replication_factor": 1}})
    assert name in adm.list_topics()
    (described,) = adm.describe_topics([name])
    assert [one["partition_index"] for one in described["partitions"]] == [0, 1, 2]
    paged = adm.describe_topic_partitions([name], response_partition_limit=2)
    assert [one["partition_index"] for one in paged["topics"][0]["partitions"]] == [0, 1]
    assert paged["next_cursor"] == {"topic_name": name, "partition_index": 2}
    rest = adm.describe_topic_partitions([name], cursor=paged["next_cursor"])
    assert [one["partition_index"] for one in rest["topics"][0]["partitions"]] == [2]
    adm.delete_topics([name])
    eventually(lambda: name not in adm.list_topics(), "it is gone from the list")


def test_a_topic_grows(adm: Any, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    adm.create_partitions({topic: 3})
    eventually(lambda: len(adm.describe_topics([topic])[0]["partitions"]) == 3, "it has grown")
    with pytest.raises(errors.InvalidPartitionsError):
        adm.create_partitions({topic: 2})


def test_settings_change_step_by_step(adm: Any, make_topic: MakeTopic) -> None:
    topic = make_topic()

    def settings() -> dict[str, Any]:
        found = adm.describe_configs([admin.ConfigResource("topic", topic)], config_filter="all")
        configs: dict[str, Any] = found["topic"][topic]
        return configs

    def alter(configs: dict[str, Any]) -> None:
        adm.alter_configs([admin.ConfigResource("topic", topic, configs)])

    assert settings()["cleanup.policy"]["value"] == "delete"
    alter({"cleanup.policy": ("APPEND", "compact"), "retention.ms": "5000"})
    eventually(lambda: settings()["cleanup.policy"]["value"] == "delete,compact", "compact was added")
    assert settings()["retention.ms"]["value"] == "5000"
    alter({"cleanup.policy": ("SUBTRACT", "delete"), "retention.ms": ("DELETE", None)})
    eventually(lambda: settings()["cleanup.policy"]["value"] == "compact", "delete was taken away")
    assert settings()["retention.ms"]["value"] == "604800000"
    adm.alter_configs([admin.ConfigResource("topic", topic, {"retention.ms": "9000"})], incremental=False)
    eventually(lambda: settings()["retention.ms"]["value"] == "9000", "replaced as older clients do")


def test_the_cluster_and_its_disks_are_described(adm: Any, client: KafkaPythonClient, topic: str) -> None:
    client.produce(topic, [Sent(b"x" * 100)])
    cluster = adm.describe_cluster()
    assert cluster["cluster_id"]
    assert len(cluster["brokers"]) == 1
    (answer,) = adm.describe_log_dirs({topic: [0]})
    (folder,) = answer["log_dirs"]
    (found,) = folder["topics"]
    assert found["partitions"][0]["partition_size"] > 100
    assert adm.list_partition_reassignments() == {}


def test_records_are_deleted_and_offsets_listed(adm: Any, client: KafkaPythonClient, topic: str) -> None:
    client.produce(topic, [Sent(b"x", timestamp=T0 + at) for at in (10, 90, 50)])
    place = part(topic)

    def ask(spec: Any) -> int:
        offset: int = adm.list_partition_offsets({place: spec})[place].offset
        return offset

    assert ask(admin.OffsetSpec.EARLIEST) == 0
    assert ask(admin.OffsetSpec.LATEST) == 3
    assert ask(admin.OffsetSpec.MAX_TIMESTAMP) == 1
    assert ask(T0 + 20) == 1
    adm.delete_records({place: 2})
    assert ask(admin.OffsetSpec.EARLIEST) == 2


def test_groups_are_listed_described_altered_and_deleted(
    adm: Any, client: KafkaPythonClient, topic: str, group: str
) -> None:
    client.produce(topic, [Sent(b"x")] * 9)
    member = client.join(group, topic, instance="fixed")
    try:
        eventually(lambda: member.assignment() == {0}, "the group is stable")
        eventually(lambda: adm.describe_groups([group])[group]["group_state"] == "Stable", "it is described as stable")
        described = adm.describe_groups([group])[group]
        assert [one["group_instance_id"] for one in described["members"]] == ["fixed"]
        # A member may rejoin by itself, so a request can arrive during a rebalance.
        eventually(
            lambda: group in {one["group_id"] for one in adm.list_groups(states_filter=["Stable"])},
            "it is listed among the stable",
        )
        assert group not in {one["group_id"] for one in adm.list_groups(states_filter=["Empty"])}
        assert adm.delete_groups([group]) == {group: "NonEmptyGroupError"}
    finally:
        member.close()
    adm.remove_group_members(group, [admin.MemberToRemove(group_instance_id="fixed")])
    eventually(lambda: adm.describe_groups([group])[group]["group_state"] == "Empty", "the group is empty")
    adm.alter_group_offsets(group, {part(topic): structs.OffsetAndMetadata(4, "moved", -1)})
    assert adm.list_group_offsets(group)[group][part(topic)][:2] == (4, "moved")
    adm.reset_group_offsets(group, {part(topic): admin.OffsetSpec.LATEST})
    assert adm.list_group_offsets(group)[group][part(topic)].offset == 9
    adm.delete_group_offsets(group, [part(topic)])
    assert adm.list_group_offsets(group)[group] == {}
    assert adm.delete_groups([group]) == {group: "OK"}


def test_idempotent_producers_are_described(adm: Any, client: KafkaPythonClient, topic: str) -> None:
    client.produce(topic, [Sent(b"x")] * 3, idempotent=True)
    state = adm.describe_producers([part(topic)])[part(topic)]
    (producer,) = state.active_producers
    assert producer.last_sequence == 2
