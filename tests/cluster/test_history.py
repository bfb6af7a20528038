"""Records that are produced over HTTP while brokers are killed and restarted, one after another."""

import secrets
from functools import partial

from tests.cluster.conftest import RunningProxy
from tests.history.workload import Workload, run
from tests.live.apache_kafka_cluster import NODE_IDS, ClusterNode, KafkaCluster
from tests.rounds import rounds

REQUESTS = rounds(400, 4000)


def kill_and_restart(cluster: KafkaCluster, node: ClusterNode) -> None:
    node.kill()
    cluster.wait_until_fenced(node)
    cluster.restart(node)


def test_every_acknowledged_record_is_stored_once_while_brokers_are_killed(
    cluster: KafkaCluster, running_proxy: RunningProxy
) -> None:
    ways = ["v2", "v2-keyed", "v3", "streaming", "batch", "batch-keyed", "web-socket"]
    disturbances = {
        (number + 1) / (len(NODE_IDS) + 1): partial(kill_and_restart, cluster, cluster.node(node_id))
        for number, node_id in enumerate(NODE_IDS)
    }
    topic = f"history-{secrets.token_hex(4)}"
    workload = Workload(topic, ways, 20, REQUESTS, partitions=6, replicas=3, disturbances=disturbances)
    with running_proxy({}) as proxy:
        outcome = run(workload, proxy.url, cluster.address)
    assert outcome.violations == []
    assert outcome.unfinished_keys == []
    assert outcome.acknowledged > REQUESTS
