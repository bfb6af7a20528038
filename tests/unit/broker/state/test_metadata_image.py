"""Entries of the metadata journal: their format, and the state that they replay to."""

import uuid

import pytest

from headgate.broker.state.metadata_image import (
    MetadataImage,
    TopicEntry,
    broker_entry,
    producer_ids_entry,
    replay,
    topic_entry,
    topic_key,
)
from headgate.broker.state.settings import Scope

ID = uuid.UUID(int=7)
OTHER = uuid.UUID(int=8)


def test_written_entries_replay_to_the_state_that_they_describe() -> None:
    image = replay(
        [
            topic_entry("a", ID, 3, {"retention.ms": "5"}),
            broker_entry(Scope.ALL_BROKERS, {"message.max.bytes": "1"}),
            broker_entry(Scope.THIS_BROKER, {"message.max.bytes": "2"}),
            producer_ids_entry(4000),
            (b"a key of a later version", b"?"),
        ]
    )
    assert image == MetadataImage(
        topics={("a", ID): TopicEntry(3, {"retention.ms": "5"})},
        broker_overrides={
            Scope.ALL_BROKERS: {"message.max.bytes": "1"},
            Scope.THIS_BROKER: {"message.max.bytes": "2"},
        },
        producer_ids_end=4000,
    )


def test_the_last_entry_of_a_key_counts() -> None:
    first, second = topic_entry("a", ID, 1, {}), topic_entry("a", ID, 2, {})
    ids = [producer_ids_entry(1000), producer_ids_entry(2000)]
    overrides = [broker_entry(Scope.THIS_BROKER, {"a": "1"}), (broker_entry(Scope.THIS_BROKER, {})[0], None)]
    image = replay([first, second, *ids, *overrides])
    assert image.topics["a", ID].partitions == 2
    assert image.producer_ids_end == 2000
    assert image.broker_overrides == {Scope.THIS_BROKER: {}}
    assert image.unreadable == []


def test_a_deleted_topic_is_remembered_until_its_name_is_used_again() -> None:
    entries = [topic_entry("a", ID, 1, {}), (topic_key("a", ID), None), (topic_key("unknown", OTHER), None)]
    image = replay(entries)
    assert (image.topics, image.deleted, image.deleted_names) == ({}, {ID, OTHER}, {"a", "unknown"})
    image = replay([*entries, topic_entry("a", uuid.UUID(int=9), 1, {})])
    assert image.topics.keys() == {("a", uuid.UUID(int=9))}
    assert (image.deleted, image.deleted_names) == ({ID, OTHER}, {"unknown"})


@pytest.mark.parametrize(
    ("number", "is_read"),
    [
        (b"0", True),
        (b"9223372036854775807", True),
        (b"9223372036854775808", False),
        (b"0000000000000000001", True),
        (b"00000000000000000001", False),
        (b"-1", False),
        (b"", False),
    ],
)
def test_the_end_of_the_producer_ids_is_a_number_of_63_bits(number: bytes, is_read: bool) -> None:
    image = replay([(b"producer-ids", number)])
    assert image.producer_ids_end == (int(number) if is_read else None)
    assert len(image.unreadable) == (0 if is_read else 1)


def test_without_a_value_the_producer_ids_are_unknown() -> None:
    image = replay([(b"producer-ids", None)])
    assert (image.producer_ids_end, image.unreadable) == (None, [])


@pytest.mark.parametrize(
    ("key", "partitions", "reason"),
    [
        (topic_key("a", ID), 1, None),
        (topic_key("a", ID), 0, "0 partitions"),
        (topic_key("", ID), 1, "does not hold a name and an id"),
        (topic_key("a", ID)[:-1], 1, "does not hold a name and an id"),
        (b"topic\x00a\x01" + ID.bytes, 1, "does not hold a name and an id"),
        (topic_key("a/b", ID), 1, "Topic name is invalid"),
    ],
)
def test_topics_with_an_invalid_key_or_without_partitions_are_skipped(
    key: bytes, partitions: int, reason: str | None
) -> None:
    good = topic_entry("good", OTHER, 1, {})
    image = replay([good, (key, topic_entry("a", ID, partitions, {})[1])])
    if reason is None:
        assert image.topics.keys() == {("good", OTHER), ("a", ID)}
    else:
        assert image.topics.keys() == {("good", OTHER)}
        (description,) = image.unreadable
        assert description.startswith("entry 1 with key ")
        assert reason in description
