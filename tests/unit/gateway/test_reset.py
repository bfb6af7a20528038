import pytest

from gateway.cli.errors import UsageError
from gateway.cli.group import parse_places
from gateway.kafka.offsets import Place
from gateway.kafka.reset import Aim, Move, NothingCommitted, Target, plan

A, B = Place("t", 0), Place("t", 1)
BOUNDS = {A: (10, 100), B: (0, 0)}
COMMITTED = {A: 50, B: 0}


def after(target: Target, at_time: dict[Place, int] | None = None) -> list[tuple[int, str]]:
    return [(move.after, move.note) for move in plan(target, [A, B], COMMITTED, BOUNDS, at_time or {})]


def test_earliest_and_latest_are_the_ends_of_each_partition() -> None:
    assert after(Target(Aim.EARLIEST)) == [(10, ""), (0, "")]
    assert after(Target(Aim.LATEST)) == [(100, ""), (0, "")]


def test_an_offset_outside_a_partition_is_moved_inside_and_noted() -> None:
    assert after(Target(Aim.OFFSET, 5)) == [(10, "5 is before the start"), (0, "5 is behind the end")]


def test_a_shift_counts_from_what_is_committed() -> None:
    assert after(Target(Aim.SHIFT, -10)) == [(40, ""), (0, "-10 is before the start")]
    assert after(Target(Aim.SHIFT, 1000))[0] == (100, "1050 is behind the end")


def test_a_shift_without_a_commit_is_refused() -> None:
    with pytest.raises(NothingCommitted, match="nothing for partition 1 of topic t"):
        plan(Target(Aim.SHIFT, 1), [B], {}, BOUNDS, {})


def test_a_time_is_the_first_record_not_older_and_else_the_end() -> None:
    assert after(Target(Aim.TIME, 1), {A: 70, B: -1}) == [(70, ""), (0, "nothing so late; the end")]


def test_the_lag_after_the_move_is_told() -> None:
    assert plan(Target(Aim.EARLIEST), [A], {}, BOUNDS, {}) == [Move(A, None, 10, 100)]
    assert plan(Target(Aim.EARLIEST), [A], {}, BOUNDS, {})[0].lag == 90


@pytest.mark.parametrize(
    ("text", "expected"), [("orders", ("orders", [])), ("orders:0,2", ("orders", [0, 2])), ("a.b:1", ("a.b", [1]))]
)
def test_topics_may_name_their_partitions(text: str, expected: tuple[str, list[int]]) -> None:
    assert parse_places(text) == expected


@pytest.mark.parametrize("text", ["", ":0", "a:", "a:x", "a:-1", "a:1,"])
def test_topics_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_places(text)
