"""Plans of batch queries and micro-batches: which offsets a query reads, and which losses it reports."""

import asyncio
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from headgate.spark_udfs.source import planning
from headgate.spark_udfs.source.errors import BadOption, DataLost, TopicMissing
from headgate.spark_udfs.source.offsets import Mark
from headgate.spark_udfs.source.options import ReadOptions, read_options
from headgate.spark_udfs.source.positions import EARLIEST, LATEST, AtEdge, AtOffsets, AtTimes, Edge, NoMatch
from headgate.spark_udfs.source.ranges import OffsetRange
from tests.unit.spark_udfs.source.fake_cluster import FakeCluster

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOGS = {A: (5, 20), B: (0, 10)}


def options(*, is_streaming: bool = True, **more: Any) -> ReadOptions:
    return read_options(
        {"bootstrap.servers": "a:1", "subscribe": "orders", **more},
        is_streaming=is_streaming,
    )


LENIENT: dict[str, Any] = {"failOnDataLoss": "false"}


def resolve(position: Any, edge: Edge = Edge.START, times: Any = None, **more: Any) -> Any:
    fake = FakeCluster(dict(LOGS), times or {})
    return asyncio.run(planning.resolved(fake.cluster, options(**more), position, edge, LOGS))


def stream(fake: FakeCluster, start: Mark, end: Mark, **more: Any) -> list[OffsetRange]:
    return asyncio.run(planning.stream_ranges(fake.cluster, options(**more), start, end))


def batch(fake: FakeCluster, **more: Any) -> list[OffsetRange]:
    return asyncio.run(planning.batch_ranges(fake.cluster, options(is_streaming=False, **more)))


def test_edges_are_the_first_and_the_next_offset() -> None:
    assert resolve(AtEdge(EARLIEST)) == {A: 5, B: 0}
    assert resolve(AtEdge(LATEST)) == {A: 20, B: 10}


def test_offsets_from_the_first_to_the_next_are_valid() -> None:
    assert resolve(AtOffsets({A: 5, B: 10})) == {A: 5, B: 10}
    assert resolve(AtOffsets({A: 20, B: 0})) == {A: 20, B: 0}
    assert resolve(AtOffsets({A: EARLIEST, B: LATEST})) == {A: 5, B: 10}
    assert resolve(AtOffsets({A: LATEST, B: EARLIEST})) == {A: 20, B: 0}


@pytest.mark.parametrize(("offset", "clamped"), [(4, 5), (21, 20)])
def test_an_offset_outside_the_log_is_lost_or_clamped(offset: int, clamped: int) -> None:
    with pytest.raises(DataLost, match=rf"'startingOffsets': orders-0 has no offset {offset}: its log holds 5 up to"):
        resolve(AtOffsets({A: offset, B: 3}))
    assert resolve(AtOffsets({A: offset, B: 3}), **LENIENT) == {A: clamped, B: 3}


def test_offsets_name_every_partition_and_no_other() -> None:
    with pytest.raises(BadOption, match=r"every partition that is read; orders-1 is missing \(-2 stands for earliest"):
        resolve(AtOffsets({A: 5}))
    with pytest.raises(BadOption, match="orders-7 is not among the partitions that are read"):
        resolve(AtOffsets({A: 5, B: 5, TopicPartition("orders", 7): 1}))
    with pytest.raises(BadOption, match=r"'endingOffsetsByTimestamp'.*orders-1 is missing \(times are in millisec"):
        resolve(AtTimes({A: 5}), Edge.END)


def test_timestamps_become_the_offset_of_the_next_record() -> None:
    fake = FakeCluster(dict(LOGS), {A: 7, B: 3})
    found = asyncio.run(planning.resolved(fake.cluster, options(), AtTimes({A: 100, B: 200}), Edge.START, LOGS))
    assert found == {A: 7, B: 3}
    assert fake.requested_times == [{A: 100, B: 200}]


def test_one_timestamp_applies_to_all_partitions() -> None:
    fake = FakeCluster(dict(LOGS), {A: 7, B: 3})
    asyncio.run(planning.resolved(fake.cluster, options(), AtTimes(None, 300), Edge.START, LOGS))
    asyncio.run(planning.resolved(fake.cluster, options(), AtTimes(None, 0), Edge.START, LOGS))
    assert fake.requested_times == [{A: 300, B: 300}, {A: 0, B: 0}]


def test_the_offset_of_an_open_transaction_is_clamped_to_the_end() -> None:
    assert resolve(AtTimes(None, 1), times={A: 25, B: 10}) == {A: 20, B: 10}


def test_a_timestamp_after_all_records_is_an_error_only_at_the_start() -> None:
    with pytest.raises(BadOption, match="'startingTimestamp': orders-1 has no record at or after that time"):
        resolve(AtTimes(None, 1), times={A: 7, B: None})
    assert resolve(AtTimes(None, 1, NoMatch.LATEST), times={A: 7, B: None}) == {A: 7, B: 10}
    assert resolve(AtTimes(None, 1), Edge.END, times={A: 7, B: None}) == {A: 7, B: 10}


def test_a_batch_reads_each_partition_from_start_to_end() -> None:
    assert batch(FakeCluster(dict(LOGS))) == [OffsetRange(A, 5, 20), OffsetRange(B, 0, 10)]


def test_a_batch_may_be_empty_but_not_end_before_its_start() -> None:
    ends = '{"orders": {"0": %d, "1": 10}}'
    starts = '{"orders": {"0": 7, "1": 0}}'
    assert batch(FakeCluster(dict(LOGS)), startingOffsets=starts, endingOffsets=ends % 7) == [OffsetRange(B, 0, 10)]
    with pytest.raises(BadOption, match="'endingOffsets': orders-0 would end at offset 6, before its start at 7"):
        batch(FakeCluster(dict(LOGS)), startingOffsets=starts, endingOffsets=ends % 6)


def test_a_batch_is_divided_as_the_options_demand() -> None:
    assert len(batch(FakeCluster(dict(LOGS)), minPartitions="5")) == 5
    assert max(one.size for one in batch(FakeCluster(dict(LOGS)), maxRecordsPerPartition="4")) == 4


def test_a_micro_batch_reads_from_the_checkpoint_to_its_end() -> None:
    found = stream(FakeCluster(dict(LOGS)), Mark({A: 8, B: 2}), Mark({A: 20, B: 10}))
    assert found == [OffsetRange(A, 8, 20), OffsetRange(B, 2, 10)]
    assert len(stream(FakeCluster(dict(LOGS)), Mark({A: 8, B: 2}), Mark({A: 20, B: 10}), minPartitions="6")) == 6


def test_an_empty_micro_batch_asks_no_broker() -> None:
    assert stream(FakeCluster({}), Mark({}), Mark({})) == []


def test_a_new_partition_is_read_from_its_beginning() -> None:
    found = stream(FakeCluster({A: (5, 20), B: (0, 10)}), Mark({A: 20}), Mark({A: 20, B: 10}))
    assert found == [OffsetRange(B, 0, 10)]


def test_missing_records_of_a_new_partition_are_lost() -> None:
    fake = FakeCluster({A: (5, 20), B: (1, 10)})
    with pytest.raises(DataLost, match="orders-1 is new and its first 1 records are gone already"):
        stream(fake, Mark({A: 20}), Mark({A: 20, B: 10}))
    assert stream(fake, Mark({A: 20}), Mark({A: 20, B: 10}), **LENIENT) == [OffsetRange(B, 1, 10)]


def test_records_that_retention_removed_are_lost() -> None:
    fake = FakeCluster({A: (5, 20)})
    assert stream(fake, Mark({A: 5}), Mark({A: 20})) == [OffsetRange(A, 5, 20)]
    with pytest.raises(DataLost, match="Offsets 4 to 4 of orders-0 are gone: the log now begins at 5"):
        stream(fake, Mark({A: 4}), Mark({A: 20}))
    with pytest.raises(DataLost, match="Offsets 1 to 2 of orders-0 are gone"):
        stream(fake, Mark({A: 1}), Mark({A: 3}))
    assert stream(fake, Mark({A: 4}), Mark({A: 20}), **LENIENT) == [OffsetRange(A, 5, 20)]
    # Nothing was to be read, so nothing is lost.
    assert stream(fake, Mark({A: 3}), Mark({A: 3})) == []


def test_a_topic_that_shrank_was_created_again() -> None:
    fake = FakeCluster({A: (0, 6)})
    with pytest.raises(DataLost, match="orders-0 was read up to offset 9 and now ends at 6: the topic was deleted"):
        stream(fake, Mark({A: 9}), Mark({A: 6}))
    assert stream(fake, Mark({A: 9}), Mark({A: 6}), **LENIENT) == [OffsetRange(A, 0, 6)]


def test_a_topic_with_another_id_was_created_again() -> None:
    fake = FakeCluster({A: (0, 30)}, ids={"orders": "new"})
    start, end = Mark({A: 9}, {"orders": "old"}), Mark({A: 30}, {"orders": "new"})
    with pytest.raises(DataLost, match=r"had the id old then, and has new now.*set checkTopicIds to false"):
        stream(fake, start, end)
    assert stream(fake, start, end, **LENIENT) == [OffsetRange(A, 0, 30)]


def test_a_topic_that_was_deleted_after_planning_is_lost() -> None:
    fake = FakeCluster({A: (0, 30)}, ids={"orders": "newer"})
    end = Mark({A: 30}, {"orders": "planned"})
    for cluster, last in ((fake, end), (FakeCluster({A: (0, 30)}), Mark({A: 30, B: 4}))):
        with pytest.raises(DataLost, match="is part of the batch but no longer in the cluster"):
            stream(cluster, Mark(dict(last.offsets), last.topic_ids), last)
    assert stream(fake, Mark({A: 9}, {"orders": "planned"}), end, **LENIENT) == []
    assert stream(FakeCluster({A: (0, 30)}), Mark({A: 9, B: 1}), Mark({A: 30, B: 4}), **LENIENT) == [
        OffsetRange(A, 9, 30)
    ]


def test_a_partition_of_the_checkpoint_must_still_be_selected_and_exist() -> None:
    other = TopicPartition("other", 0)
    with pytest.raises(BadOption, match="'subscribe': other-0 is in the checkpoint but is no longer selected"):
        planning.check_gone(options(), {other})
    planning.check_gone(options(**LENIENT), {other})
    with pytest.raises(DataLost, match="orders-1 was read before and is no longer in the cluster"):
        planning.check_gone(options(), {B})
    planning.check_gone(options(), set())
    planning.check_recreated(options(), Mark({A: 1}), Mark({A: 1}))


def test_a_stream_sees_the_ends_and_the_ids_of_topics() -> None:
    fake = FakeCluster(dict(LOGS), ids={"orders": "x"})
    mark = asyncio.run(planning.partitions_and_latest(fake.cluster, options()))
    assert mark == Mark({A: 20, B: 10}, {"orders": "x"})
    without_ids = asyncio.run(planning.partitions_and_latest(fake.cluster, options(checkTopicIds="false")))
    assert without_ids == Mark({A: 20, B: 10})


def test_only_a_query_that_accepts_loss_continues_without_its_topic() -> None:
    with pytest.raises(TopicMissing, match="Topic orders is not in the cluster"):
        asyncio.run(planning.partitions_and_latest(FakeCluster({}).cluster, options()))
    assert asyncio.run(planning.partitions_and_latest(FakeCluster({}).cluster, options(**LENIENT))) == Mark({})
