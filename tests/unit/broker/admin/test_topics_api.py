"""CreateTopics, DeleteTopics and CreatePartitions on a broker without sockets."""

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.handlers import create_partitions, create_topics, delete_topics, metadata
from headgate.broker.node import topic_creation
from headgate.broker.node.opening import open_broker
from headgate.broker.state.settings import BrokerSettings
from tests.manual_clock import ManualClock
from tests.unit.broker.admin.asking import BROKER, SET, TOPIC, Admin, new_topic


def create(admin: Admin, *topics: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = admin.ask(create_topics, topics=topics, **more)
    return {topic["name"]: topic for topic in answer["topics"]}


def codes(topics: dict[str, Any]) -> dict[str, str]:
    return {name: topic["error_code"] for name, topic in topics.items()}


@pytest.mark.parametrize("version", create_topics.VERSIONS)
def test_create_topics_answers_every_version(admin: Admin, version: int) -> None:
    (answer,) = admin.ask(create_topics, version, topics=[new_topic("a", 3)])["topics"]
    topic = admin.broker.topics.find("a")
    assert topic is not None
    assert len(topic.partitions) == 3
    assert answer["error_code"] == "none"
    assert answer.get("topic_id", topic.topic_id) == topic.topic_id
    assert answer.get("num_partitions", 3) == 3


def test_create_topics_lists_configs_with_their_sources(admin: Admin) -> None:
    answer = create(admin, new_topic("a", configs={"retention_ms": " 5 ", "preallocate": "TRUE"}))["a"]
    configs = {config["name"]: (config["value"], config["config_source"]) for config in answer["configs"]}
    assert configs["retention.ms"] == (" 5 ", 1)
    assert configs["preallocate"] == ("TRUE", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)
    assert "internal.segment.bytes" not in configs


def test_one_bad_topic_among_good_ones_fails_alone(admin: Admin) -> None:
    answers = create(
        admin,
        new_topic("good"),
        new_topic("bad name"),
        new_topic("many", replication_factor=3),
        new_topic("none", partitions=0),
        new_topic("odd", configs={"no_such": "1"}),
        new_topic("null", configs={"retention_ms": None}),
        new_topic("twice"),
        new_topic("twice"),
    )
    assert codes(answers) == {
        "good": "none",
        "bad name": "invalid_topic_exception",
        "many": "invalid_replication_factor",
        "none": "invalid_partitions",
        "odd": "invalid_config",
        "null": "invalid_config",
        "twice": "invalid_request",
    }
    assert [topic.name for topic in admin.broker.topics.all()] == ["good"]
    assert answers["bad name"]["num_partitions"] == -1
    assert answers["bad name"]["configs"] == []


def test_validate_only_creates_nothing_and_returns_the_planned_topic(admin: Admin) -> None:
    answer = create(admin, new_topic("a", -1, -1), validate_only=True)["a"]
    assert (answer["error_code"], answer["num_partitions"], answer["replication_factor"]) == ("none", 1, 1)
    assert admin.broker.topics.find("a") is None


def test_names_collide_with_topics_that_exist_and_within_one_request(admin: Admin) -> None:
    admin.create("a.b")
    answers = create(admin, new_topic("a_b"), new_topic("a.b"), new_topic("c.d"), new_topic("c_d"))
    assert codes(answers) == {
        "a_b": "invalid_topic_exception",
        "a.b": "topic_already_exists",
        "c.d": "none",
        "c_d": "invalid_topic_exception",
    }


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ({0: [1], 1: [1]}, "none"),
        ({1: [1]}, "invalid_replica_assignment"),
        ({0: []}, "invalid_replica_assignment"),
        ({0: [1, 1]}, "invalid_replica_assignment"),
        ({0: [9]}, "invalid_replica_assignment"),
        ({-1: [1]}, "invalid_replica_assignment"),
    ],
)
def test_assignments_by_hand_are_checked(admin: Admin, assignments: dict[int, list[int]], code: str) -> None:
    assert codes(create(admin, new_topic("a", -1, -1, assignments=assignments))) == {"a": code}


def test_assignments_leave_no_room_for_counts(admin: Admin) -> None:
    assert codes(create(admin, new_topic("a", 1, -1, assignments={0: [1]}))) == {"a": "invalid_request"}
    assert codes(create(admin, new_topic("a", -1, 1, assignments={0: [1]}))) == {"a": "invalid_request"}


def test_partitions_are_bounded_per_request_per_topic_and_in_all(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(headgate_partitions_max="8", headgate_topic_partitions_max="5")
    assert codes(create(admin, new_topic("a", 5_001), new_topic("b", 5_000))) == {
        "a": "policy_violation",
        "b": "policy_violation",
    }
    assert codes(create(admin, new_topic("a", 6))) == {"a": "invalid_partitions"}
    assert codes(create(admin, new_topic("a", 5), new_topic("b", 4))) == {"a": "none", "b": "invalid_partitions"}


def test_a_default_replication_factor_of_two_prevents_topic_creation(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(default_replication_factor="2")
    assert codes(create(admin, new_topic("a", 1, -1), new_topic("b", 1, 1))) == {
        "a": "invalid_replication_factor",
        "b": "none",
    }


def test_changes_are_on_disk_when_they_are_answered(admin: Admin, tmp_path: Path) -> None:
    admin.create("gone", "kept", "grown")
    admin.ask(delete_topics, topics=[{"name": "gone"}])
    admin.ask(create_partitions, topics=[{"name": "grown", "count": 3, "assignments": None}])
    admin.alter(TOPIC, "kept", ("retention.ms", SET, "77"))
    admin.alter(BROKER, "1", ("message.max.bytes", SET, "88"))
    # Copy the files as a killed process leaves them, without a clean shutdown.
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    survivor = open_broker(tmp_path / "killed", BrokerSettings(), lambda callback: callback(), clock=ManualClock())
    try:
        partitions = {topic.name: len(topic.partitions) for topic in survivor.topics.all()}
        assert partitions == {"kept": 1, "grown": 3}
        kept = survivor.topics.find("kept")
        assert kept is not None
        assert (kept.settings.retention_ms, kept.settings.max_message_bytes) == (77, 88)
    finally:
        survivor.close()


def test_topics_and_their_configs_outlive_a_restart(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin()
    admin.create("a", partitions=2, retention_ms="77")
    before = admin.broker.topics.find("a")
    again = open_admin().broker.topics.find("a")
    assert before is not None
    assert again is not None
    assert (again.topic_id, len(again.partitions), again.settings.retention_ms) == (before.topic_id, 2, 77)


@pytest.mark.parametrize("version", range(1, 6))
def test_delete_topics_by_name(admin: Admin, version: int) -> None:
    admin.create("a", "b")
    answers = admin.ask(delete_topics, version, topic_names=["a", "absent", "b", "b"])["responses"]
    assert [(answer["name"], answer["error_code"]) for answer in answers] == [
        ("a", "none"),
        ("absent", "unknown_topic_or_partition"),
        ("b", "invalid_request"),
    ]
    assert [topic.name for topic in admin.broker.topics.all()] == ["b"]


def test_delete_topics_by_id_and_each_way_to_be_wrong(admin: Admin) -> None:
    admin.create("a", "b", "c")
    a, b, c = (topic.topic_id for topic in admin.broker.topics.all())
    unknown = uuid.UUID(int=7)
    answers = admin.ask(
        delete_topics,
        topics=[
            {"topic_id": a},
            {"topic_id": unknown},
            {"name": "b", "topic_id": b},
            {"name": None},
            {"name": "c"},
            {"topic_id": c},
        ],
    )["responses"]
    assert [(answer["name"], answer["topic_id"], answer["error_code"]) for answer in answers] == [
        ("a", a, "none"),
        (None, unknown, "unknown_topic_id"),
        ("b", b, "invalid_request"),
        (None, None, "invalid_request"),
        ("c", c, "invalid_request"),
    ]
    assert [topic.name for topic in admin.broker.topics.all()] == ["b", "c"]


def test_the_brokers_own_topics_cannot_be_deleted(admin: Admin) -> None:
    admin.create("__consumer_offsets")
    (answer,) = admin.ask(delete_topics, topics=[{"name": "__consumer_offsets"}])["responses"]
    assert answer["error_code"] == "invalid_request"
    assert admin.broker.topics.find("__consumer_offsets") is not None


def test_topic_deletion_can_be_switched_off(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(delete_topic_enable="false")
    admin.create("a")
    (answer,) = admin.ask(delete_topics, topics=[{"name": "a"}])["responses"]
    assert answer["error_code"] == "topic_deletion_disabled"


def test_a_deleted_topic_is_gone_after_a_restart_and_can_be_made_again(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin()
    admin.create("a", partitions=3)
    admin.ask(delete_topics, topics=[{"name": "a"}])
    admin = open_admin()
    assert list(admin.broker.topics.all()) == []
    admin.create("a")
    topic = open_admin().broker.topics.find("a")
    assert topic is not None
    assert len(topic.partitions) == 1


@pytest.mark.parametrize("version", create_partitions.VERSIONS)
@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, "invalid_partitions"),
        (1, None, "invalid_partitions"),
        (-1, None, "invalid_partitions"),
        (4, None, "none"),
        (3, [[1]], "none"),
        (3, [], "invalid_replica_assignment"),
        (3, [[1], [1]], "invalid_replica_assignment"),
        (3, [[2]], "invalid_replica_assignment"),
        (20_000, None, "policy_violation"),
    ],
)
def test_create_partitions(
    admin: Admin, version: int, count: int, assignments: list[list[int]] | None, code: str
) -> None:
    admin.create("a", partitions=2)
    listed = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
    asked = [{"name": "a", "count": count, "assignments": listed}, {"name": "absent", "count": 5, "assignments": None}]
    for validate_only in (True, False):
        answers = admin.ask(create_partitions, version, topics=asked, validate_only=validate_only)["results"]
        assert [answer["error_code"] for answer in answers] == [code, "unknown_topic_or_partition"]
        topic = admin.broker.topics.find("a")
        assert topic is not None
        assert len(topic.partitions) == (count if code == "none" and not validate_only else 2)


def test_a_topic_named_twice_does_not_grow(admin: Admin) -> None:
    admin.create("a")
    asked = [{"name": "a", "count": count, "assignments": None} for count in (2, 3)]
    answers = admin.ask(create_partitions, topics=asked)["results"]
    assert [answer["error_code"] for answer in answers] == ["invalid_request"]


def names_and_codes(answer: Any) -> dict[str, str]:
    return {topic["name"]: topic["error_code"] for topic in answer["topics"]}


def test_topics_that_metadata_creates_keep_to_the_same_rules(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(headgate_partitions_max="2")
    asked = [{"name": name} for name in ("a.b", "a_b", "__cluster_metadata", "bad name", "c", "one.too.many")]
    answer = admin.ask(metadata, topics=asked, allow_auto_topic_creation=True)
    assert names_and_codes(answer) == {
        "a.b": "none",
        "a_b": "invalid_topic_exception",
        "__cluster_metadata": "invalid_request",
        "bad name": "invalid_topic_exception",
        "c": "none",
        "one.too.many": "invalid_partitions",
    }


def test_one_metadata_request_creates_only_so_many_topics(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_creation, "REQUEST_PARTITIONS_MAX", 2)
    asked = [{"name": name} for name in ("a", "b", "c")]
    answer = admin.ask(metadata, topics=asked, allow_auto_topic_creation=True)
    assert names_and_codes(answer) == {"a": "none", "b": "none", "c": "policy_violation"}
