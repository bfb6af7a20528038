"""The topics of the broker and their partitions."""

import uuid
from types import SimpleNamespace
from typing import Any

from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topics import Topic, Topics


def new_log(end_offset: int = 0) -> Any:
    return SimpleNamespace(log_end_offset=end_offset, leader_epoch=3, on_visible=None, settings=None)


def new_topic(name: str, **overrides: str) -> Topic:
    configs = {key.replace("_", "."): value for key, value in overrides.items()}
    return Topic(name, uuid.uuid4(), configs, BrokerSettings().topic_settings(configs))


def test_topics_are_found_by_name_and_by_id() -> None:
    topics = Topics()
    topic, other = new_topic("a"), new_topic("__consumer_offsets")
    for each in (topic, other):
        topics.add(each)
    for end_offset in (5, 7):
        topics.add_partition(topic, new_log(end_offset))
    topics.add_partition(other, new_log())
    assert topics.partition_count == 3
    assert [topics.find("a"), topics.find_by_id(topic.topic_id), topics.find("b")] == [topic, topic, None]
    assert topics.find_by_id(None) is None
    assert topics.find_by_id(uuid.uuid4()) is None
    assert [topics.end_offset("a", index) for index in (-1, 0, 1, 2)] == [None, 5, 7, None]
    assert topics.end_offset("b", 0) is None
    assert [partition.index for partition in topic.partitions] == [0, 1]
    assert [partition.leader_epoch for partition in topic.partitions] == [3, 3]
    assert [log.log_end_offset for log in topics.logs()] == [5, 7, 0]
    assert [topic.internal, other.internal] == [False, True]
    topics.remove(topic)
    assert (topics.partition_count, list(topics.all())) == (1, [other])
    assert topics.find("a") is topics.find_by_id(topic.topic_id) is None


def test_topics_that_are_being_opened_are_in_the_journal() -> None:
    topics = Topics()
    ready, growing, new = new_topic("ready"), new_topic("growing"), new_topic("new")
    for each in (ready, growing):
        topics.add(each)
        topics.add_partition(each, new_log())
    topics.start_opening(growing, 4)
    topics.start_opening(new, 2)
    assert sorted(each.name for each in topics.all_in_journal()) == ["growing", "new", "ready"]
    assert [topics.partitions_in_journal(each) for each in (ready, growing, new)] == [1, 4, 2]
    topics.finish_opening(growing)
    assert topics.partitions_in_journal(growing) == 1
    topics.add(new)
    topics.remove(new)
    assert sorted(each.name for each in topics.all_in_journal()) == ["growing", "ready"]


def test_waiting_requests_are_notified_of_visible_bytes() -> None:
    topics, topic, log = Topics(), new_topic("a"), new_log()
    topics.add_partition(topic, log)
    waiters, arrived = topic.partitions[0].waiters, list[int]()

    def once(count: int) -> None:
        arrived.append(count)
        waiters.clear()

    waiters["first"] = once
    waiters["second"] = arrived.append
    log.on_visible(10)
    assert arrived == [10, 10]
    log.on_visible(5)
    assert arrived == [10, 10]


def test_configs_of_the_broker_reach_topics_without_overrides() -> None:
    topics = Topics()
    follows, overrides = new_topic("follows"), new_topic("overrides", retention_ms="5")
    for each in (follows, overrides):
        topics.add(each)
        topics.add_partition(each, new_log())
    topics.apply(BrokerSettings({"log.retention.ms": "9"}))
    assert [each.settings.retention_ms for each in (follows, overrides)] == [9, 5]
    assert [each.partitions[0].log.settings for each in (follows, overrides)] == [follows.settings, overrides.settings]
