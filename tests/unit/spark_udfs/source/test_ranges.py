"""How much a micro-batch takes, and how ranges become tasks."""

import pytest
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from headgate.spark_udfs.source.offsets import INITIAL, Mark, from_json, to_json
from headgate.spark_udfs.source.ranges import OffsetRange, divided, limited

A, B, C = (TopicPartition("orders", partition) for partition in range(3))

offsets = st.integers(0, 10**12)
places = st.builds(TopicPartition, st.sampled_from(["a", "b", "c-d"]), st.integers(0, 12))


@given(st.dictionaries(places, st.tuples(offsets, st.integers(0, 10**9))), st.integers(1, 10**7))
def test_a_batch_never_takes_more_than_its_limit_and_always_comes_on(
    waiting: dict[TopicPartition, tuple[int, int]], records_max: int
) -> None:
    start = {at: begin for at, (begin, _) in waiting.items()}
    latest = {at: begin + size for at, (begin, size) in waiting.items()}
    end = limited(start, latest, records_max)
    assert end.keys() == latest.keys()
    assert all(start[at] <= end[at] <= latest[at] for at in end)
    total = sum(size for _, size in waiting.values())
    assert sum(end[at] - start[at] for at in end) == min(total, records_max)
    readable = [at for at in end if latest[at] > start[at]]
    if records_max >= len(readable):
        assert all(end[at] > start[at] for at in readable)


def test_shares_are_proportional_to_the_backlog() -> None:
    assert limited({A: 0, B: 0, C: 5}, {A: 900, B: 100, C: 5}, 100) == {A: 90, B: 10, C: 5}


def test_a_partition_whose_log_went_back_is_left_to_the_plan() -> None:
    assert limited({A: 50, B: 0}, {A: 10, B: 100}, 20) == {A: 10, B: 20}


@given(
    st.lists(st.tuples(offsets, st.integers(0, 10**6)), max_size=12),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(10**4, 10**6),
)
def test_tasks_cover_every_offset_once(
    sizes: list[tuple[int, int]], partitions_min: int | None, records_max: int | None
) -> None:
    ranges = [OffsetRange(TopicPartition("t", at), begin, begin + size) for at, (begin, size) in enumerate(sizes)]
    tasks = divided(ranges, partitions_min, records_max)
    assert all(task.size > 0 for task in tasks)
    for one in ranges:
        pieces = [task for task in tasks if task.at == one.at]
        assert [piece.start for piece in pieces] == ([one.start] + [p.end for p in pieces[:-1]] if pieces else [])
        assert sum(piece.size for piece in pieces) == one.size
    if records_max is not None:
        assert all(task.size <= records_max for task in tasks)


def test_large_ranges_are_cut_until_there_are_enough_tasks() -> None:
    tasks = divided([OffsetRange(A, 0, 900), OffsetRange(B, 0, 100), OffsetRange(C, 3, 3)], partitions_min=10)
    assert [task.at for task in tasks].count(A) == 9
    assert [task.at for task in tasks].count(B) == 1
    assert len(tasks) == 10


def test_more_tasks_than_records_are_not_made() -> None:
    assert len(divided([OffsetRange(A, 5, 8)], partitions_min=50)) == 3


@given(st.dictionaries(places, offsets), st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3)))
def test_offsets_survive_a_checkpoint_in_one_order(positions: dict[TopicPartition, int], ids: dict[str, str]) -> None:
    mark = Mark(positions, ids)
    nested = to_json(mark)
    assert from_json({**nested, INITIAL: nested}) == mark
    turned = Mark(dict(reversed(positions.items())), dict(reversed(ids.items())))
    assert str(to_json(turned)) == str(nested)


@pytest.mark.parametrize("ids", ["orders", ["x"], {"orders": 3}])
def test_ids_of_topics_that_are_none_are_refused(ids: object) -> None:
    with pytest.raises(ValueError, match="must be an object of texts"):
        from_json({"orders": {"0": 1}, "$topicIds": ids})


def test_a_topic_without_a_known_id_is_considered_the_same() -> None:
    known, other, unknown = (Mark({A: 1, B: 1}, ids) for ids in ({A.topic: "x"}, {A.topic: "y"}, {}))
    assert known.recreated(other) == {at for at in (A, B) if at.topic == A.topic}
    assert known.recreated(known) == known.recreated(unknown) == unknown.recreated(known) == set()
    assert unknown.recreated(Mark({A: 1, B: 0})) == {B}


def test_partitions_are_ordered_by_number() -> None:
    nested = to_json(Mark({TopicPartition("t", partition): 1 for partition in (10, 9, 1)}))
    assert list(nested["t"]) == ["1", "9", "10"]
