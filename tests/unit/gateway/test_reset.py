import pytest

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.group import note_on, parse_places, places_by_topic
from headgate.kafka_client.admin.offsets import Place
from headgate.kafka_client.admin.reset import Aim, Target, plan

A, B = Place("t", 0), Place("t", 1)
BOUNDS = {A: (10, 100), B: (0, 0)}
COMMITTED = {A: 50, B: 0}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target(Aim.EARLIEST), ["", ""]),
        (Target(Aim.LATEST), ["", ""]),
        (Target(Aim.OFFSET, 5), ["5 is before the start", "5 is after the end"]),
        (Target(Aim.SHIFT, -10), ["", "-10 is before the start"]),
        (Target(Aim.SHIFT, 1000), ["1050 is after the end", "1000 is after the end"]),
        (Target(Aim.TIMESTAMP, 1), ["", "no record that recent; moved to the end"]),
    ],
)
def test_a_clamped_offset_has_a_note(target: Target, expected: list[str]) -> None:
    assert [note_on(move) for move in plan(target, [A, B], COMMITTED, BOUNDS, {A: 70, B: -1})] == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("orders", ("orders", [])), ("orders:0,2", ("orders", [0, 2])), ("a.b:1", ("a.b", [1]))]
)
def test_topics_may_name_their_partitions(text: str, expected: tuple[str, list[int]]) -> None:
    assert parse_places(text) == expected


def test_a_topic_may_be_named_several_times() -> None:
    assert places_by_topic(["a:0", "b", "a:2"]) == {"a": [0, 2], "b": []}
    assert places_by_topic(["a:0", "a"]) == places_by_topic(["a", "a:0"]) == {"a": []}


@pytest.mark.parametrize("text", ["", ":0", "a:", "a:x", "a:-1", "a:1,"])
def test_malformed_topic_arguments_are_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        parse_places(text)
