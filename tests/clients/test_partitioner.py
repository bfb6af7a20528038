"""Every client sends a key to the partition that Java's murmur2 partitioner selects."""

import pytest

from tests.clients.client import Client, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.conftest import MakeTopic
from tests.clients.java import JavaTools

PARTITIONS = 7

# Observed with Java 4.3.1: ConsoleProducer to a topic with seven partitions on Apache Kafka.
JAVAS_CHOICE = {
    "a": 5,
    "key": 4,
    "Kafka": 5,
    "0": 3,
    "1": 2,
    "42": 3,
    "user-123": 0,
    "ünïcode": 6,
    "a much longer key, longer than four bytes": 0,
    "x" * 100: 4,
}


def where_keys_went(reader: ConfluentClient, topic: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for partition in range(PARTITIONS):
        _, end = reader.bounds(topic, partition)
        for record in reader.read(topic, partition, 0, end) if end else []:
            assert record.key is not None
            found[record.key.decode()] = partition
    return found


def test_every_client_picks_the_partition_that_java_picks(
    client: Client, broker_address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    client.produce(topic, [Sent(b"x", key=key.encode()) for key in JAVAS_CHOICE])
    assert where_keys_went(ConfluentClient(broker_address), topic) == JAVAS_CHOICE


@pytest.mark.java
def test_java_picks_these_partitions(java_tools: None, broker_address: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    reader = ("parse.key=true", "key.separator=|")
    JavaTools(broker_address).produce(topic, [f"{key}|x" for key in JAVAS_CHOICE], reader=reader)
    assert where_keys_went(ConfluentClient(broker_address), topic) == JAVAS_CHOICE
