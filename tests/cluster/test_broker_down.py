"""Reads of the proxy's admin API while one of three brokers is down."""

import secrets
from functools import partial
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.cluster.conftest import RunningProxy
from tests.live.apache_kafka_cluster import NODE_IDS, KafkaCluster, wait_for
from tests.live.topics import create_topic
from tests.rounds import rounds

ROUNDS = rounds(2, 10)
READ_SECONDS_MAX = 60.0
"""A read of groups waits until the cluster has replaced the coordinator: the proxy's limit is 30 s per operation."""
GROUPS = 12
"""More groups than partitions of `__consumer_offsets`, so that each broker coordinates some of them."""


@pytest.fixture(scope="module")
def topic(cluster: KafkaCluster) -> str:
    name = f"reads-{secrets.token_hex(4)}"
    create_topic(cluster.address, name, 6, 3)
    return name


@pytest.fixture(scope="module")
def groups(cluster: KafkaCluster, topic: str) -> list[str]:
    prefix = f"group-{secrets.token_hex(4)}"
    names = [f"{prefix}-{number}" for number in range(GROUPS)]
    for name in names:
        consumer = Consumer({"bootstrap.servers": cluster.address, "group.id": name, "log_level": 0})
        wait_for(partial(is_committed, consumer, topic), "the first offset of the group is committed")
        consumer.close()
    return names


def is_committed(consumer: Consumer, topic: str) -> bool:
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    except KafkaException:  # The coordinator of a new cluster is not ready.
        return False
    return True


def check_reads(client: httpx.Client, topic: str, groups: list[str]) -> None:
    """Every response must be complete."""
    base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"

    def read(path: str) -> Any:
        answer = client.get(f"{base}{path}")
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    assert topic in [row["topic_name"] for row in read("/topics")["data"]]
    assert read(f"/topics/{topic}")["partitions_count"] == 6
    assert len(read("/brokers")["data"]) >= len(NODE_IDS) - 1
    listed = {row["consumer_group_id"] for row in read("/consumer-groups")["data"]}
    assert set(groups) <= listed, f"missing: {set(groups) - listed}"
    for group in groups:
        assert read(f"/consumer-groups/{group}")["state"] == "EMPTY"
    assert read(f"/consumer-groups/{groups[0]}/lags")["data"][0]["current_offset"] == 0
    health = client.get("/health")
    assert health.status_code == 200, health.text
    assert health.json()["kafka"]["status"] == "UP"


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_admin_reads_and_health_work_while_one_broker_is_down(
    cluster: KafkaCluster, running_proxy: RunningProxy, topic: str, groups: list[str], node_id: int
) -> None:
    node = cluster.node(node_id)
    with running_proxy({}) as proxy, httpx.Client(base_url=proxy.url, timeout=READ_SECONDS_MAX) as client:
        check_reads(client, topic, groups)
        node.kill()
        try:
            # The first reads arrive before the cluster has noticed that the broker is down.
            for _ in range(ROUNDS):
                check_reads(client, topic, groups)
            cluster.wait_until_fenced(node)
            # A proxy that starts now has an address among its bootstrap servers that does not answer.
            with running_proxy({}) as fresh, httpx.Client(base_url=fresh.url, timeout=READ_SECONDS_MAX) as other:
                for _ in range(ROUNDS):
                    check_reads(other, topic, groups)
        finally:
            cluster.restart(node)
        check_reads(client, topic, groups)


def test_reads_of_groups_do_not_wait_for_a_broker_that_is_paused(
    cluster: KafkaCluster, running_proxy: RunningProxy, topic: str, groups: list[str]
) -> None:
    """The connection to a paused broker stays open. Without a check, the read would wait for the request timeout."""
    with (
        running_proxy({"kafka.request.timeout.ms": "120000"}) as proxy,
        httpx.Client(base_url=proxy.url, timeout=READ_SECONDS_MAX) as client,
    ):
        check_reads(client, topic, groups)
        node = cluster.node(NODE_IDS[0])
        node.pause()
        try:
            check_reads(client, topic, groups)
        finally:
            node.resume()
        cluster.wait_until_in_sync()
        check_reads(client, topic, groups)
