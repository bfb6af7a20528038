"""Stream readers without Spark. `Query` takes the role of Spark and keeps the checkpoint."""

import json

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headgate.spark_udfs.source.admission import StreamReader
from tests.spark.source.queries import KINDS, Query, names
from tests.spark.source.topics import Topics, numbered


@KINDS
def test_a_stream_reads_existing_and_then_new_records(topics: Topics, kind: type[Query]) -> None:
    topic = topics.create(2)
    topics.produce(topic, numbered(5))
    query = kind(topics.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 5)
    assert query.batch() is None
    topics.produce(topic, numbered(3, 1, first=5))
    assert query.values() == names(5, 8)
    query.stop()


@KINDS
def test_a_restart_goes_on_where_the_checkpoint_ends(embedded: Topics, kind: type[Query]) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(5))
    query = kind(embedded.source(topic, startingOffsets="earliest"))
    assert query.values() == names(0, 5)
    query.stop()
    embedded.produce(topic, numbered(4, first=5))
    again = kind(embedded.source(topic, startingOffsets="earliest"), query.checkpoint)
    assert again.values() == names(5, 9)
    again.stop()


@KINDS
@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_first_batch_that_is_repeated_begins_where_it_began(embedded: Topics, kind: type[Query], start: str) -> None:
    """Spark asks for the beginning again then, and "latest" is another place by now."""
    topic = embedded.create()
    embedded.produce(topic, numbered(3))
    query = kind(embedded.source(topic, startingOffsets=start))
    embedded.produce(topic, numbered(4, first=3))
    planned = query.plan()
    assert planned is not None
    query.stop()
    embedded.produce(topic, numbered(2, first=7))
    again = kind(embedded.source(topic, startingOffsets=start))
    rows = again.run(json.loads(json.dumps(planned)))
    assert [row["value"].decode() for row in rows] == names(0 if start == "earliest" else 3, 7)
    assert again.values() == names(7, 9)
    again.stop()


@KINDS
def test_a_stream_from_latest_keeps_its_position_before_the_first_record(embedded: Topics, kind: type[Query]) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(3))
    query = kind(embedded.source(topic))
    assert query.batch() == []
    assert query.batch() is None
    query.stop()
    embedded.produce(topic, numbered(2, first=3))
    again = kind(embedded.source(topic), query.checkpoint)
    assert again.values() == names(3, 5)
    again.stop()


@KINDS
def test_batches_keep_to_their_limit(topics: Topics, kind: type[Query]) -> None:
    topic = topics.create(3)
    topics.produce(topic, [message for partition in range(3) for message in numbered(20 * partition + 1, partition)])
    query = kind(topics.source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="10"))
    sizes = []
    while (rows := query.batch()) is not None:
        sizes.append(len(rows))
    assert sizes == [10, 10, 10, 10, 10, 10, 3]
    query.stop()


def test_spark_may_ask_for_everything_whatever_the_limit(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(30))
    source = embedded.source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    reader = source.streamReader(source.schema())
    assert isinstance(reader, StreamReader)
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable())[topic] == {"0": 30}
    assert reader.latestOffset(start, ReadMaxRows(4))[topic] == {"0": 4}
    assert reader.reportLatestOffset() == {topic: {"0": 30}}
    reader.stop()


def test_available_now_ends_at_the_offsets_of_its_start(embedded: Topics) -> None:
    topic = embedded.create(2)
    embedded.produce(topic, numbered(7))
    query = Query(embedded.source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="3"))
    query.reader.prepareForTriggerAvailableNow()
    embedded.produce(topic, numbered(9, 1, first=7))
    embedded.grow(topic, 4)
    assert query.values() == names(0, 7)
    query.stop()
    assert len(Query(embedded.source(topic), query.checkpoint).values()) == 9


@KINDS
def test_partitions_that_are_added_are_read_from_their_beginning(topics: Topics, kind: type[Query]) -> None:
    topic = topics.create(1)
    topics.produce(topic, numbered(2))
    query = kind(topics.source(topic, startingOffsets="latest", maxOffsetsPerTrigger="100"))
    query.values()
    topics.grow(topic, 3)
    topics.produce(topic, [*numbered(1, 0, first=2), *numbered(2, 2, first=3)])
    assert query.values() == names(2, 5)
    query.stop()


@KINDS
def test_topics_that_appear_are_read_where_the_pattern_fits(embedded: Topics, kind: type[Query]) -> None:
    first = embedded.create()
    embedded.produce(first, numbered(2))
    query = kind(embedded.source(subscribePattern=f"{first}.*", startingOffsets="earliest"))
    assert query.values() == names(0, 2)
    second = embedded.create(name=f"{first}-more")
    embedded.produce(second, numbered(3))
    assert query.values() == names(0, 3)
    query.stop()


def test_a_pattern_may_match_nothing_at_first(embedded: Topics) -> None:
    name = embedded.create() + "-late"
    query = Query(embedded.source(subscribePattern=name, startingOffsets="earliest"))
    assert query.batch() is None
    embedded.create(name=name)
    embedded.produce(name, numbered(2))
    assert query.values() == names(0, 2)
    query.stop()
