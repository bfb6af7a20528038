"""Streams whose topics were deleted, created again or truncated since the checkpoint."""

import json

import pytest

from headgate.kafka_client import requests
from headgate.spark_udfs.source.errors import BadOption, DataLost, TopicMissing
from tests.spark.source.queries import KINDS, Query, names
from tests.spark.source.topics import Topics, numbered


def test_records_that_retention_took_fail_the_stream_or_are_left_out(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, numbered(10))
    checkpoint: list[str] = []
    query = Query(topics.source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="4"), checkpoint)
    assert len(query.batch() or []) == 4
    topics.trim(topic, 0, 7)
    end = query.plan()
    assert end is not None
    with pytest.raises(DataLost, match=f"Offsets 4 to 6 of {topic}-0 are gone: the log now begins at 7"):
        query.run(end)
    query.stop()
    accepting = Query(topics.source(topic, failOnDataLoss="false"), checkpoint[:1])
    assert accepting.values() == names(7, 10)
    accepting.stop()


def test_a_recreated_topic_fails_the_stream_or_is_read_from_its_beginning(
    embedded: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no ids are known, as long as it has not grown past what was read."""
    monkeypatch.setattr(requests, "_VERSION_MAX", {requests.Api.METADATA: 9})
    topic = embedded.create()
    embedded.produce(topic, numbered(10))
    query = Query(embedded.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 10)
    query.stop()
    embedded.delete(topic)
    embedded.create(name=topic)
    embedded.produce(topic, numbered(3, first=10))
    failing = Query(embedded.source(topic), list(query.checkpoint))
    with pytest.raises(DataLost, match="was read up to offset 10 and now ends at 3"):
        failing.batch()
    failing.stop()
    accepting = Query(embedded.source(topic, failOnDataLoss="false"), list(query.checkpoint))
    assert accepting.values() == names(10, 13)
    accepting.stop()


@KINDS
@pytest.mark.parametrize("size", [10, 14])
def test_a_recreated_topic_is_detected_even_if_it_has_more_records(
    topics: Topics, kind: type[Query], size: int
) -> None:
    topic = topics.create()
    topics.produce(topic, numbered(10))
    query = kind(topics.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 10)
    query.stop()
    topics.delete(topic)
    topics.create(2, name=topic)
    topics.produce(topic, numbered(size, first=10))
    failing = kind(topics.source(topic), list(query.checkpoint))
    problem = f"{topic}-0 was read up to offset 10 and topic {topic} had the id .* re-created"
    with pytest.raises(DataLost, match=problem):
        failing.batch()
    failing.stop()
    # With what the failed query left behind: PySpark before 4.2 has planned a batch by then.
    accepting = kind(topics.source(topic, failOnDataLoss="false"), list(query.checkpoint))
    if failing.checkpoint != query.checkpoint:
        rows = accepting.run(json.loads(failing.checkpoint[-1]))
        assert [row["value"].decode() for row in rows] == names(10, 10 + size)
    else:
        assert accepting.values() == names(10, 10 + size)
    topics.produce(topic, numbered(1, first=99))
    assert accepting.values() == ["v99"]
    accepting.stop()


def test_a_recreated_topic_is_read_within_the_limit(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(10))
    query = Query(embedded.source(topic, startingOffsets="earliest"))
    assert len(query.values()) == 10
    query.stop()
    embedded.delete(topic)
    embedded.create(name=topic)
    embedded.produce(topic, numbered(7))
    accepting = Query(embedded.source(topic, failOnDataLoss="false", maxOffsetsPerTrigger="3"), query.checkpoint)
    sizes = []
    while (rows := accepting.batch()) is not None:
        sizes.append(len(rows))
    assert sizes == [3, 3, 1]
    accepting.stop()


@pytest.mark.parametrize("recreated", [False, True])
def test_a_batch_whose_topic_was_deleted_after_it_was_planned_is_lost(embedded: Topics, recreated: bool) -> None:
    topic, other = embedded.create(), embedded.create()
    for one in (topic, other):
        embedded.produce(one, numbered(2))
    query = Query(embedded.source(f"{topic},{other}", startingOffsets="earliest"))
    planned = query.plan()
    assert planned is not None
    query.stop()
    embedded.delete(topic)
    if recreated:
        embedded.create(name=topic)
        embedded.produce(topic, numbered(5, first=10))
    failing = Query(embedded.source(f"{other},{topic}" if recreated else other, startingOffsets="earliest"))
    with pytest.raises(DataLost, match=f"{topic}-0 is part of the batch but no longer in the cluster"):
        failing.run(planned)
    failing.stop()
    source = embedded.source(f"{topic},{other}", failOnDataLoss="false")
    accepting = Query(source, query.checkpoint)
    accepting.start = planned["$initial"]
    assert [row["topic"] for row in accepting.run(planned)] == [other, other]
    assert accepting.values() == (names(10, 15) if recreated else [])
    accepting.stop()


def test_a_checkpoint_without_ids_of_topics_goes_on(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, numbered(3))
    query = Query(topics.source(topic), [json.dumps({topic: {"0": 1}})])
    assert query.values() == names(1, 3)
    assert list(json.loads(query.checkpoint[-1])["$topicIds"]) == [topic]
    query.stop()
    idle = Query(topics.source(topic), [json.dumps({topic: {"0": 3}})])
    assert idle.plan() is None
    idle.stop()


def test_a_stream_may_go_on_with_a_copy_of_its_topic_in_another_cluster(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(4))
    query = Query(embedded.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 4)
    query.stop()
    embedded.delete(topic)
    embedded.create(name=topic)
    embedded.produce(topic, numbered(6))
    failing = Query(embedded.source(topic), list(query.checkpoint))
    with pytest.raises(DataLost, match="a copy with the same offsets in another cluster, set checkTopicIds to false"):
        failing.batch()
    failing.stop()
    moved = Query(embedded.source(topic, checkTopicIds="false"), query.checkpoint)
    assert moved.values() == names(4, 6)
    assert json.loads(moved.checkpoint[-1]) == {topic: {"0": 6}}, "as Spark's own source has it"
    moved.stop()


def test_a_stream_of_brokers_that_know_no_ids_keeps_none(embedded: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before Kafka 2.8 support Metadata up to version 9."""
    monkeypatch.setattr(requests, "_VERSION_MAX", {requests.Api.METADATA: 9})
    topic = embedded.create()
    embedded.produce(topic, numbered(3))
    query = Query(embedded.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 3)
    assert json.loads(query.checkpoint[-1]) == {topic: {"0": 3}, "$initial": {topic: {"0": 0}}}
    query.stop()


def test_a_named_topic_that_is_gone_fails_the_stream_or_is_forgotten(embedded: Topics) -> None:
    first, second = embedded.create(), embedded.create()
    for topic in (first, second):
        embedded.produce(topic, numbered(2))
    query = Query(embedded.source(f"{first},{second}", startingOffsets="earliest"))
    assert len(query.values()) == 4
    query.stop()
    embedded.delete(second)
    embedded.produce(first, numbered(1, first=2))
    failing = Query(embedded.source(f"{first},{second}"), list(query.checkpoint))
    with pytest.raises(TopicMissing, match=second):
        failing.batch()
    failing.stop()
    accepting = Query(embedded.source(f"{first},{second}", failOnDataLoss="false"), list(query.checkpoint))
    assert accepting.values() == ["v2"]
    accepting.stop()


def test_a_partition_that_is_gone_fails_the_stream_or_is_forgotten(embedded: Topics) -> None:
    first, second = embedded.create(), embedded.create()
    for topic in (first, second):
        embedded.produce(topic, numbered(2))
    query = Query(embedded.source(subscribePattern=f"{first}|{second}", startingOffsets="earliest"))
    assert len(query.values()) == 4
    query.stop()
    embedded.delete(second)
    embedded.produce(first, numbered(1, first=2))
    pattern = f"{first}|{second}"
    failing = Query(embedded.source(subscribePattern=pattern), list(query.checkpoint))
    with pytest.raises(DataLost, match=f"{second}-0 was read before"):
        failing.batch()
    failing.stop()
    assert failing.checkpoint == query.checkpoint
    accepting = Query(embedded.source(subscribePattern=pattern, failOnDataLoss="false"), list(query.checkpoint))
    assert accepting.values() == ["v2"]
    accepting.stop()


def test_a_checkpoint_is_not_harmed_by_a_query_that_names_another_topic(embedded: Topics) -> None:
    first, second = embedded.create(), embedded.create()
    for topic in (first, second):
        embedded.produce(topic, numbered(2))
    query = Query(embedded.source(first, startingOffsets="earliest"))
    assert query.values() == ["v0", "v1"]
    query.stop()
    mistaken = Query(embedded.source(second, startingOffsets="earliest"), query.checkpoint)
    with pytest.raises(BadOption, match=f"Option 'subscribe': {first}-0 is in the checkpoint but"):
        mistaken.batch()
    mistaken.stop()
    embedded.produce(first, numbered(1, first=2))
    again = Query(embedded.source(first), query.checkpoint)
    assert again.values() == ["v2"]
    again.stop()
