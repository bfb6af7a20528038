"""DeleteRecords and the APIs that describe topics, the cluster, log directories and producers."""

from collections.abc import Callable
from typing import Any

import pytest

from headgate.broker.handlers import (
    delete_records,
    describe_cluster,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    list_partition_reassignments,
)
from headgate.broker.log.producer_state import BatchMark, ProducerState
from tests.unit.broker.admin.asking import Admin


def pages(admin: Admin, names: list[str], limit: int) -> list[list[tuple[str, list[int]]]]:
    """Follow the cursor. Return all pages."""
    found = []
    cursor = None
    while True:
        answer = admin.ask(
            describe_topic_partitions,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        found.append(
            [(topic["name"], [each["partition_index"] for each in topic["partitions"]]) for topic in answer["topics"]]
        )
        cursor = answer["next_cursor"]
        if cursor is None:
            return found


def test_pages_cover_every_partition_once_in_the_order_of_names(admin: Admin) -> None:
    admin.create("b", "a", partitions=3)
    admin.create("c")
    assert pages(admin, [], 2000) == [[("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0])]]
    assert pages(admin, [], 2) == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1, 2])], [("c", [0])]]
    assert pages(admin, ["c", "b", "b"], 3) == [[("b", [0, 1, 2])], [("c", [0])]]
    assert pages(admin, ["c"], -5) == [[("c", [0])]]


def test_the_brokers_limit_overrides_the_limit_of_the_client(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(max_request_partition_size_limit="2")
    admin.create("a", partitions=3)
    assert pages(admin, [], 2000) == [[("a", [0, 1])], [("a", [2])]]


def test_unknown_and_illegal_names_are_described_as_such(admin: Admin) -> None:
    asked = [{"name": name} for name in ("absent", "bad name", "")]
    answer = admin.ask(describe_topic_partitions, topics=asked, response_partition_limit=10)
    assert [(topic["name"], topic["error_code"]) for topic in answer["topics"]] == [
        ("", "invalid_topic_exception"),
        ("absent", "unknown_topic_or_partition"),
        ("bad name", "invalid_topic_exception"),
    ]


@pytest.mark.parametrize(("name", "index"), [("a", -1), ("absent", 0)])
def test_a_cursor_that_points_nowhere_is_refused(admin: Admin, name: str, index: int) -> None:
    admin.create("a")
    cursor = {"topic_name": name, "partition_index": index}
    answer = admin.ask(describe_topic_partitions, topics=[{"name": "a"}], response_partition_limit=10, cursor=cursor)
    assert [topic["error_code"] for topic in answer["topics"]] == ["invalid_request"]


def test_a_cursor_past_the_partitions_or_at_a_deleted_topic_goes_on(admin: Admin) -> None:
    admin.create("a", "c")
    asked: dict[str, Any] = {"topics": [], "response_partition_limit": 10}
    answer = admin.ask(describe_topic_partitions, **asked, cursor={"topic_name": "a", "partition_index": 9})
    assert [(topic["name"], len(topic["partitions"])) for topic in answer["topics"]] == [("a", 0), ("c", 1)]
    answer = admin.ask(describe_topic_partitions, **asked, cursor={"topic_name": "b", "partition_index": 9})
    assert [(topic["name"], len(topic["partitions"])) for topic in answer["topics"]] == [("c", 1)]


@pytest.mark.parametrize("version", describe_cluster.VERSIONS)
def test_describe_cluster(open_admin: Callable[..., Admin], version: int) -> None:
    admin = open_admin(advertised_listeners="PLAINTEXT://example.org:1234", broker_rack="r1", node_id="5")
    answer = admin.ask(describe_cluster, version, include_cluster_authorized_operations=True, endpoint_type=1)
    (broker,) = answer["brokers"]
    assert (broker["broker_id"], broker["host"], broker["port"], broker["rack"]) == (5, "example.org", 1234, "r1")
    assert (answer["controller_id"], answer["cluster_authorized_operations"]) == (5, 8096)
    assert answer["cluster_id"] == admin.broker.cluster_id


@pytest.mark.parametrize(("endpoint_type", "code"), [(2, "mismatched_endpoint_type"), (3, "unsupported_endpoint_type")])
def test_describe_cluster_serves_brokers_only(admin: Admin, endpoint_type: int, code: str) -> None:
    answer = admin.ask(describe_cluster, endpoint_type=endpoint_type)
    assert (answer["error_code"], answer["brokers"], answer["controller_id"]) == (code, [], -1)


@pytest.mark.parametrize("version", describe_log_dirs.VERSIONS)
def test_describe_log_dirs(admin: Admin, version: int) -> None:
    admin.create("a", partitions=2)
    admin.create("b")

    def listed(topics: list[dict[str, Any]] | None) -> dict[str, list[int]]:
        (result,) = admin.ask(describe_log_dirs, version, topics=topics)["results"]
        if version >= 4:
            assert 0 < result["usable_bytes"] <= result["total_bytes"]
        return {
            topic["name"]: [partition["partition_index"] for partition in topic["partitions"]]
            for topic in result["topics"]
        }

    assert listed(None) == {"a": [0, 1], "b": [0]}
    assert listed([]) == {}
    twice = [{"topic": "a", "partitions": [1, 7, 1]}, {"topic": "a", "partitions": [1]}]
    assert listed([*twice, {"topic": "absent", "partitions": [0]}]) == {"a": [1]}


def test_describe_producers(admin: Admin) -> None:
    admin.create("a", partitions=2)
    topic = admin.broker.topics.find("a")
    assert topic is not None
    state = ProducerState(3, 1000)
    state.batches.append(BatchMark(0, 9, 0, 2000))
    topic.partitions[0].log.producers.by_id[42] = state
    asked = [
        {"name": "a", "partition_indexes": [0, 1, 7, -1, 0]},
        {"name": "absent", "partition_indexes": [0]},
        {"name": "bad name", "partition_indexes": [0]},
    ]
    answer = admin.ask(describe_producers, topics=asked)["topics"]
    found = {
        (topic["name"], each["partition_index"]): (each["error_code"], len(each["active_producers"]))
        for topic in answer
        for each in topic["partitions"]
    }
    assert found == {
        ("a", 0): ("none", 1),
        ("a", 1): ("none", 0),
        ("a", 7): ("unknown_topic_or_partition", 0),
        ("a", -1): ("unknown_topic_or_partition", 0),
        ("absent", 0): ("unknown_topic_or_partition", 0),
        ("bad name", 0): ("invalid_topic_exception", 0),
    }
    assert answer[0]["partitions"][0]["active_producers"] == [
        {
            "producer_id": 42,
            "producer_epoch": 3,
            "last_sequence": 9,
            "last_timestamp": 2000,
            "coordinator_epoch": -1,
            "current_txn_start_offset": -1,
        }
    ]


def test_no_partition_is_ever_reassigned(admin: Admin) -> None:
    answer = admin.ask(list_partition_reassignments, topics=None)
    assert (answer["error_code"], answer["topics"]) == ("none", [])


@pytest.mark.parametrize("version", delete_records.VERSIONS)
def test_delete_records_rejects_invalid_offsets_and_protected_topics(admin: Admin, version: int) -> None:
    admin.create("a")
    admin.create("compacted", cleanup_policy="compact")
    admin.create("compacted-and-deleted", cleanup_policy="compact,delete")
    admin.create("without-a-policy", cleanup_policy="")
    admin.create("__consumer_offsets")

    def cut(name: str, index: int, offset: int) -> tuple[str, int]:
        partitions = [{"partition_index": index, "offset": offset}]
        (topic,) = admin.ask(delete_records, version, topics=[{"name": name, "partitions": partitions}])["topics"]
        (answer,) = topic["partitions"]
        return answer["error_code"], answer["low_watermark"]

    assert cut("a", 0, -1) == ("none", 0)
    assert cut("a", 0, 0) == ("none", 0)
    assert cut("a", 0, 1) == ("offset_out_of_range", -1)
    assert cut("a", 0, -2) == ("offset_out_of_range", -1)
    assert cut("a", 1, 0) == ("unknown_topic_or_partition", -1)
    assert cut("a", -1, 0) == ("unknown_topic_or_partition", -1)
    assert cut("absent", 0, 0) == ("unknown_topic_or_partition", -1)
    assert cut("compacted", 0, 0) == ("policy_violation", -1)
    assert cut("compacted-and-deleted", 0, 0) == ("none", 0)
    assert cut("without-a-policy", 0, 0) == ("none", 0)
    assert cut("__consumer_offsets", 0, 0) == ("invalid_topic_exception", -1)
