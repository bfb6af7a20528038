"""The `headgate` command on a cluster of three brokers."""

from pathlib import Path

from tests.clients.cli.conftest import Cli
from tests.clients.cli.launcher import Launcher
from tests.live.apache_kafka_cluster import KafkaCluster


def test_too_many_replicas_are_refused_with_the_number_of_brokers(
    cluster: KafkaCluster, launcher: Launcher, tmp_path: Path
) -> None:
    cli = Cli(cluster.address, tmp_path, launcher)
    refused = cli("topic", "create", "four-replicas", "-r", "4", code=1)
    assert "INVALID_REPLICATION_FACTOR" in refused.err
    assert "the cluster has 3 brokers; use -r 3 or less" in refused.err
    assert "single" not in refused.err
    cli("topic", "create", "three-replicas", "-r", "3")
    assert "four-replicas" not in cli("topic", "list").out.decode()
