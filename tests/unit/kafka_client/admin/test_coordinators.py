"""Coordinators of consumer groups: which brokers list groups, and whether their lists are complete."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.admin import retries
from headgate.kafka_client.admin.coordinators import OFFSETS_TOPIC, offsets_partition, partitions_checked_max, probe_ids
from headgate.kafka_client.admin.groups import delete_group, find_group, list_any_groups
from headgate.kafka_client.errors import BrokerUnavailable, NodeUnavailable, NotReady
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


class FakeCluster(RequestClient):
    """Two brokers. Broker 1 leads partition 0 of the offsets topic, broker 2 leads partition 1 after `loading`."""

    def __init__(self, *, loading: int = 0, down: int = 0, offsets_topic: bool = True) -> None:
        self.loading = loading
        """How many requests broker 2 answers before it coordinates its partition."""
        self.down = down
        """How many requests to broker 2 fail before it is back."""
        self.offsets_topic = offsets_topic
        self.asked: list[tuple[Api, int | None]] = []

    async def send(self, api: Api, fields: Any, node: int | None = None) -> Any:
        self.asked.append((api, node))
        if node == 2 and self.down:
            self.down -= 1
            raise NodeUnavailable("Broker 2 does not respond.")
        is_loaded = node != 2 or not self.loading
        if node == 2 and self.loading:
            self.loading -= 1
        match api:
            case Api.FIND_COORDINATOR:
                return SimpleNamespace(error_code=ErrorCode.none, error_message=None, node_id=2)
            case Api.METADATA:
                return self._metadata()
            case Api.LIST_GROUPS:
                return self._listed(node, is_loaded)
            case Api.DESCRIBE_GROUPS:
                code = ErrorCode.group_id_not_found if is_loaded else ErrorCode.not_coordinator
                rows = [SimpleNamespace(group_id=each, error_code=code) for each in fields["groups"]]
                return SimpleNamespace(groups=rows)
            case Api.CONSUMER_GROUP_DESCRIBE:
                return self._described(fields["group_ids"], is_loaded)
            case Api.DELETE_GROUPS:
                code = ErrorCode.none if is_loaded else ErrorCode.coordinator_load_in_progress
                return SimpleNamespace(results=[SimpleNamespace(error_code=code)])
        raise AssertionError(api)

    def _metadata(self) -> Any:
        brokers = [SimpleNamespace(node_id=node, host="h", port=1, rack=None) for node in (1, 2)]
        partitions = [
            SimpleNamespace(partition_index=index, leader_id=index + 1, replica_nodes=[1, 2], isr_nodes=[1, 2])
            for index in (0, 1)
        ]
        code = ErrorCode.none if self.offsets_topic else ErrorCode.unknown_topic_or_partition
        topic = SimpleNamespace(name=OFFSETS_TOPIC, error_code=code, is_internal=True, partitions=partitions)
        return SimpleNamespace(brokers=brokers, controller_id=1, cluster_id="c", topics=[topic])

    @staticmethod
    def _listed(node: int | None, is_loaded: bool) -> Any:
        rows = [SimpleNamespace(group_id=f"group-{node}", protocol_type="consumer")] if is_loaded else []
        return SimpleNamespace(error_code=ErrorCode.none, groups=rows)

    @staticmethod
    def _described(ids: list[str], is_loaded: bool) -> Any:
        code = ErrorCode.none if is_loaded else ErrorCode.not_coordinator
        rows = [
            SimpleNamespace(
                group_id=each, error_code=code, error_message=None, group_state="Empty", assignor_name="", members=[]
            )
            for each in ids
        ]
        return SimpleNamespace(groups=rows)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "settling_pause_seconds", 0.0)


def listed(cluster: FakeCluster) -> list[str]:
    return [group.id for group in asyncio.run(list_any_groups(cluster))]


@pytest.mark.parametrize("loading", range(6))
def test_a_list_contains_the_groups_of_a_coordinator_that_is_loading(loading: int) -> None:
    assert listed(FakeCluster(loading=loading)) == ["group-1", "group-2"]


@pytest.mark.parametrize("down", range(6))
def test_a_list_waits_for_a_coordinator_that_is_down(down: int) -> None:
    assert listed(FakeCluster(down=down)) == ["group-1", "group-2"]


def test_all_brokers_are_asked_if_the_offsets_topic_is_not_visible() -> None:
    cluster = FakeCluster(offsets_topic=False)
    assert listed(cluster) == ["group-1", "group-2"]
    assert [node for api, node in cluster.asked if api is Api.LIST_GROUPS] == [1, 2]
    assert Api.DESCRIBE_GROUPS not in [api for api, _ in cluster.asked]


def test_a_read_of_one_group_waits_for_its_coordinator() -> None:
    assert asyncio.run(find_group(FakeCluster(down=2, loading=2), "orders")).id == "orders"


def test_a_deletion_is_sent_again_after_the_coordinator_has_loaded_the_group() -> None:
    cluster = FakeCluster(loading=2)
    asyncio.run(delete_group(cluster, "orders"))
    assert len([api for api, _ in cluster.asked if api is Api.DELETE_GROUPS]) == 3


@pytest.mark.parametrize(
    ("cluster", "kind"), [(FakeCluster(down=10**9), NodeUnavailable), (FakeCluster(loading=10**9), NotReady)]
)
def test_waiting_ends_with_the_last_error(
    cluster: FakeCluster, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "settling_seconds_max", 0.01)
    with pytest.raises(kind):
        listed(cluster)


def test_an_outage_of_all_brokers_is_reported_at_once() -> None:
    class Down(FakeCluster):
        async def send(self, api: Api, fields: Any, node: int | None = None) -> Any:
            self.asked.append((api, node))
            raise BrokerUnavailable("No broker responded.")

    cluster = Down()
    with pytest.raises(BrokerUnavailable):
        listed(cluster)
    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    ("group", "partition"),
    # From `"…".hashCode()` of Java: 0, 97, -1008770331, -2147483648 and 175616671.
    [("", 0), ("a", 47), ("orders", 31), ("polygenelubricants", 0), ("größe-😀", 21)],
)
def test_a_group_is_in_the_partition_that_kafka_chooses(group: str, partition: int) -> None:
    assert offsets_partition(group, 50) == partition


@pytest.mark.parametrize("partitions", [1, 2, 50, 333, partitions_checked_max + 1])
def test_there_is_a_probe_for_each_partition(partitions: int) -> None:
    probes = probe_ids(partitions)
    assert len(probes) == min(partitions, partitions_checked_max)
    assert [offsets_partition(probe, partitions) for probe in probes] == list(range(len(probes)))
