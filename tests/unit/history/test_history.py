"""The history checker reports every kind of violation, and only those."""

import pytest

from tests.history.history import History, Position, Stored


def history_of(acknowledged: dict[str, tuple[int, int]], unknown: tuple[str, ...] = ()) -> History:
    history = History()
    for name in unknown:
        history.send(name)
    for name, (partition, offset) in acknowledged.items():
        history.send(name)
        history.acknowledge(name, partition, offset)
    return history


def log(*rows: tuple[str, int, int]) -> list[Stored]:
    return [Stored(Position(partition, offset), name) for name, partition, offset in rows]


def test_a_correct_history_has_no_violations() -> None:
    history = history_of({"a": (0, 0), "b": (1, 0), "c": (0, 1)}, unknown=("d", "e"))
    assert history.violations(log(("a", 0, 0), ("b", 1, 0), ("c", 0, 1), ("d", 1, 1))) == []


def test_a_repeated_acknowledgement_of_one_record_is_correct() -> None:
    history = history_of({"a": (0, 0)})
    history.acknowledge("a", 0, 0)
    assert history.violations(log(("a", 0, 0))) == []


@pytest.mark.parametrize(
    ("history", "stored", "expected"),
    [
        pytest.param(history_of({"a": (0, 0)}), [], "a was acknowledged", id="lost"),
        pytest.param(
            history_of({"a": (0, 0), "b": (0, 0)}), log(("a", 0, 0)), "acknowledged to 2 records", id="shared"
        ),
        pytest.param(history_of({"a": (0, 1)}), log(("a", 0, 0)), "but is stored at", id="moved"),
        pytest.param(history_of({"a": (0, 0)}), log(("a", 0, 0), ("a", 0, 1)), "stored 2 times", id="repeated"),
        pytest.param(
            history_of({}, unknown=("a",)), log(("a", 0, 0), ("a", 0, 1)), "stored 2 times", id="unknown-repeated"
        ),
        pytest.param(history_of({}), log(("x", 0, 0)), "nobody sent it", id="unsent"),
        pytest.param(history_of({"a": (0, 1)}), log(("a", 0, 1)), "has no offsets [0]", id="gap"),
    ],
)
def test_a_violation_is_reported(history: History, stored: list[Stored], expected: str) -> None:
    assert any(expected in line for line in history.violations(stored))


def test_a_refused_record_that_is_stored_is_a_violation() -> None:
    history = history_of({}, unknown=("a",))
    history.refuse("a")
    assert history.violations(log(("a", 0, 0))) == ["a was refused, but is stored at [Position(partition=0, offset=0)]"]
