"""Reads of the proxy's admin API while one of three brokers is down."""

import secrets
import time

import httpx
import pytest
from confluent_kafka import Consumer

from tests.cluster.conftest import RunningProxy
from tests.live.apache_kafka_cluster import NODE_IDS, KafkaCluster, wait_for
from tests.live.topics import create_topic

ROUNDS = 10
READ_SECONDS_MAX = 20.0
"""A client that must leave a broker that is down connects to another one within the request timeout of 3 s."""

HEALTH_SECONDS_MAX = 5.0
COORDINATOR_SECONDS_MAX = 15.0


@pytest.fixture(scope="module")
def topic(cluster: KafkaCluster) -> str:
    name = f"reads-{secrets.token_hex(4)}"
    create_topic(cluster.address, name, 6, 3)
    return name


@pytest.fixture(scope="module")
def group(cluster: KafkaCluster, topic: str) -> str:
    name = f"group-{secrets.token_hex(4)}"
    consumer = Consumer({"bootstrap.servers": cluster.address, "group.id": name, "log_level": 0})
    consumer.subscribe([topic])

    def is_assigned() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) == 6

    wait_for(is_assigned, "the group has its partitions")
    consumer.close()
    return name


def is_listed(client: httpx.Client, group: str) -> bool:
    """Every answer must be a success, also while the groups are still loaded."""
    cluster_id = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
    answer = client.get(f"/v3/clusters/{cluster_id}/consumer-groups")
    assert answer.status_code == 200, answer.text
    return group in [row["consumer_group_id"] for row in answer.json()["data"]]


def check_reads(client: httpx.Client, topic: str, group: str) -> None:
    base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
    for path in (f"{base}/topics", f"{base}/topics/{topic}", f"{base}/brokers", f"{base}/consumer-groups"):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        if path.endswith("/topics"):
            assert topic in [row["topic_name"] for row in answer.json()["data"]]
        elif path.endswith("/brokers"):
            assert len(answer.json()["data"]) >= len(NODE_IDS) - 1
        elif path.endswith("/consumer-groups"):
            assert group in [row["consumer_group_id"] for row in answer.json()["data"]]
    described = client.get(f"{base}/consumer-groups/{group}")
    assert described.status_code == 200, described.text
    health = client.get("/health")
    assert health.status_code == 200, health.text
    assert health.json()["kafka"]["status"] == "UP"


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_admin_reads_and_health_work_while_one_broker_is_down(
    cluster: KafkaCluster, running_proxy: RunningProxy, topic: str, group: str, node_id: int
) -> None:
    node = cluster.node(node_id)
    with running_proxy({}) as proxy, httpx.Client(base_url=proxy.url, timeout=READ_SECONDS_MAX) as client:
        check_reads(client, topic, group)
        node.kill()
        try:
            for _ in range(ROUNDS):
                started = time.monotonic()
                assert client.get("/health").json()["kafka"]["status"] == "UP"
                assert time.monotonic() - started < HEALTH_SECONDS_MAX
            cluster.wait_until_fenced(node)
            # A broker that has just become a coordinator lists no groups until it begins to load them.
            wait_for(lambda: is_listed(client, group), "the group is listed", COORDINATOR_SECONDS_MAX)
            for _ in range(ROUNDS):
                check_reads(client, topic, group)
            # A proxy that starts now has an address among its bootstrap servers that does not answer.
            with running_proxy({}) as fresh, httpx.Client(base_url=fresh.url, timeout=READ_SECONDS_MAX) as other:
                for _ in range(ROUNDS):
                    check_reads(other, topic, group)
        finally:
            cluster.restart(node)
        wait_for(lambda: is_listed(client, group), "the group is listed", COORDINATOR_SECONDS_MAX)
        check_reads(client, topic, group)
