"""The advertised API versions: a subset of Kafka's versions that covers every supported client."""

import pytest

from tests.live.headgate import HeadgateBroker
from tests.wire.entities import API_KEYS
from tests.wire.raw_client import RawConnection

# The oldest version that a client sends (mostly aiokafka 0.14), and the newest (Java 4.3.1, franz-go).
NEEDED: dict[str, tuple[int, int]] = {
    "produce": (7, 13),
    "fetch": (11, 18),
    "list_offsets": (3, 11),
    "metadata": (5, 13),
    "offset_commit": (3, 10),
    "offset_fetch": (3, 10),
    "find_coordinator": (1, 6),
    "join_group": (5, 9),
    "heartbeat": (1, 4),
    "leave_group": (1, 5),
    "sync_group": (3, 5),
    "describe_groups": (3, 6),
    "list_groups": (1, 5),
    "api_versions": (0, 4),
    "create_topics": (3, 7),
    "delete_topics": (3, 6),
    "delete_records": (2, 2),
    "init_producer_id": (0, 5),
    "offset_for_leader_epoch": (4, 4),
    "describe_configs": (1, 4),
    "alter_configs": (1, 2),
    "alter_replica_log_dirs": (2, 2),
    "describe_log_dirs": (5, 5),
    "create_partitions": (1, 3),
    "delete_groups": (2, 2),
    "elect_leaders": (2, 2),
    "incremental_alter_configs": (1, 1),
    "alter_partition_reassignments": (1, 1),
    "list_partition_reassignments": (0, 0),
    "offset_delete": (0, 0),
    "describe_cluster": (2, 2),
    "describe_producers": (0, 0),
    "describe_topic_partitions": (0, 0),
}

# The versions that Apache Kafka 4.3.1 advertises in ApiVersions. A test below checks them against a live Kafka.
KAFKAS: dict[str, tuple[int, int]] = {
    "produce": (0, 13),
    "fetch": (4, 18),
    "list_offsets": (1, 11),
    "metadata": (0, 13),
    "offset_commit": (2, 10),
    "offset_fetch": (1, 10),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 6),
    "list_groups": (0, 5),
    "api_versions": (0, 4),
    "create_topics": (2, 7),
    "delete_topics": (1, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),
    "offset_for_leader_epoch": (2, 4),
    "describe_configs": (1, 4),
    "alter_configs": (0, 2),
    "alter_replica_log_dirs": (1, 2),
    "describe_log_dirs": (1, 5),
    "create_partitions": (0, 3),
    "delete_groups": (0, 2),
    "elect_leaders": (0, 2),
    "incremental_alter_configs": (0, 1),
    "alter_partition_reassignments": (0, 1),
    "list_partition_reassignments": (0, 0),
    "offset_delete": (0, 0),
    "describe_cluster": (0, 2),
    "describe_producers": (0, 0),
    "describe_topic_partitions": (0, 0),
}


def advertised(address: str) -> dict[int, tuple[int, int]]:
    with RawConnection(address) as connection:
        body = {"client_software_name": "wire-suite", "client_software_version": "1"}
        answer = connection.ask("api_versions", 4, body)
    return {key["api_key"]: (key["min_version"], key["max_version"]) for key in answer["api_keys"]}


def test_the_broker_speaks_every_version_that_clients_send(headgate_broker: HeadgateBroker) -> None:
    ours = advertised(headgate_broker.address)
    for name, (oldest, newest) in NEEDED.items():
        low, high = ours[API_KEYS[name]]
        assert low <= oldest, name
        assert high == newest, name


def test_the_broker_claims_no_version_that_kafka_has_not(headgate_broker: HeadgateBroker) -> None:
    ours = advertised(headgate_broker.address)
    for name, (oldest, newest) in KAFKAS.items():
        low, high = ours[API_KEYS[name]]
        assert oldest <= low <= high <= newest, name


@pytest.mark.kafka
def test_kafkas_versions_are_as_written_here(apache_kafka: str) -> None:
    kafkas = advertised(apache_kafka)
    assert {name: kafkas[API_KEYS[name]] for name in KAFKAS} == KAFKAS
