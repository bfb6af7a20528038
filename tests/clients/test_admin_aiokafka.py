"""The admin calls of aiokafka."""

import secrets
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.clients.aio import AioClient, structs
from tests.clients.client import Sent
from tests.clients.conftest import MakeTopic
from tests.clients.waiting import eventually

# aiokafka has few type annotations, so import it as Any.
admin: Any = import_module("aiokafka.admin")
resources: Any = import_module("aiokafka.admin.config_resource")

NO_ERROR = 0
TOPIC_ALREADY_EXISTS = 36
UNKNOWN_TOPIC_OR_PARTITION = 3


@pytest.fixture
def client(broker_address: str) -> Iterator[AioClient]:
    made = AioClient(broker_address)
    yield made
    made.close()


@pytest.fixture
def adm(client: AioClient, broker_address: str) -> Iterator[Any]:
    async def start() -> Any:
        made = admin.AIOKafkaAdminClient(bootstrap_servers=broker_address)
        await made.start()
        return made

    made = client.run(start())
    yield made
    client.run(made.close())


def test_topics_are_made_described_and_deleted(client: AioClient, adm: Any) -> None:
    name = f"admin-{secrets.token_hex(4)}"
    made = client.run(adm.create_topics([admin.NewTopic(name, 3, 1, topic_configs={"retention.ms": "777000"})]))
    assert made.topic_errors[0][1] == NO_ERROR
    again = client.run(adm.create_topics([admin.NewTopic(name, 3, 1)]))
    assert again.topic_errors[0][1] == TOPIC_ALREADY_EXISTS
    eventually(lambda: name in client.run(adm.list_topics()), "it is listed")
    (described,) = client.run(adm.describe_topics([name]))
    assert sorted(part["partition"] for part in described["partitions"]) == [0, 1, 2]
    deleted = client.run(adm.delete_topics([name]))
    assert deleted.topic_error_codes[0][1] == NO_ERROR
    eventually(lambda: name not in client.run(adm.list_topics()), "it is gone from the list")
    deleted = client.run(adm.delete_topics([name]))
    assert deleted.topic_error_codes[0][1] == UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_grows(client: AioClient, adm: Any, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    client.run(adm.create_partitions({topic: admin.NewPartitions(4)}))
    eventually(lambda: len(client.run(adm.describe_topics([topic]))[0]["partitions"]) == 4, "it has grown")


def settings(client: AioClient, adm: Any, topic: str) -> dict[str, str]:
    resource = resources.ConfigResource(resources.ConfigResourceType.TOPIC, topic)
    (answer,) = client.run(adm.describe_configs([resource]))
    ((error, _, _, _, entries),) = answer.resources
    assert error == NO_ERROR
    return {entry[0]: entry[1] for entry in entries}


def test_settings_are_described_and_replaced(client: AioClient, adm: Any, make_topic: MakeTopic) -> None:
    topic = make_topic(segment_bytes="2000000")
    before = settings(client, adm, topic)
    assert before["retention.ms"] == "604800000"
    assert before["segment.bytes"] == "2000000"
    changed = resources.ConfigResource(resources.ConfigResourceType.TOPIC, topic, {"retention.ms": "5000"})
    client.run(adm.alter_configs([changed]))
    eventually(lambda: settings(client, adm, topic)["retention.ms"] == "5000", "the new value is there")
    # AlterConfigs replaces all configs: omitted configs return to their defaults.
    assert settings(client, adm, topic)["segment.bytes"] == "1073741824"


def test_the_cluster_is_described(client: AioClient, adm: Any, broker_address: str) -> None:
    cluster = client.run(adm.describe_cluster())
    assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == [broker_address]


def test_groups_and_the_metadata_of_their_offsets(client: AioClient, adm: Any, topic: str, group: str) -> None:
    client.produce(topic, [Sent(b"x")] * 5)
    member = client.join(group, topic)
    try:
        eventually(lambda: len(member.received()) == 5, "all records arrive")
        member.commit(0, 3, "a note")
        (answer,) = client.run(adm.describe_consumer_groups([group]))
        (described,) = answer.groups
        assert described[1] == group
        assert described[2] == "Stable"
        assert (group, "consumer") in client.run(adm.list_consumer_groups())
    finally:
        member.close()
    offsets = client.run(adm.list_consumer_group_offsets(group))
    assert offsets[structs.TopicPartition(topic, 0)] == structs.OffsetAndMetadata(3, "a note")


def test_records_are_deleted(client: AioClient, adm: Any, topic: str) -> None:
    client.produce(topic, [Sent(b"x")] * 5)
    place = structs.TopicPartition(topic, 0)
    low = client.run(adm.delete_records({place: admin.RecordsToDelete(before_offset=2)}))
    assert low == {place: 2}
    assert client.bounds(topic, 0) == (2, 5)
