"""Streaming queries: their lag, their failure, and the stop after the running micro-batch."""

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.spark_udfs.pipeline import queries
from headgate.spark_udfs.pipeline.batch_gate import BatchGate, QueryStopping
from headgate.spark_udfs.pipeline.queries import Running, lag_of, start


class FakeQuery:
    """A streaming query that ends after a number of checks."""

    def __init__(self, checks: int = 10**9) -> None:
        self.checks = checks
        self.lastProgress: Any = None
        self.error: Exception | None = None
        self.is_stopped = False

    @property
    def isActive(self) -> bool:
        self.checks -= 1
        return self.checks > 0

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.is_stopped = True


def running(query: FakeQuery, gate: BatchGate | None = None) -> Running:
    started: Any = query
    return Running("q", "orders", started, gate or BatchGate())


@pytest.mark.parametrize(
    ("end", "latest", "expected"),
    [
        ({"a": {"0": 3, "1": 5}}, {"a": {"0": 10, "1": 5}}, 7),
        ('{"a": {"0": 3}}', '{"a": {"0": 10}, "b": {"0": 2}}', 9),
        ({"a": {"0": 10}}, {"a": {"0": 3}, "b": {"0": 1}}, 1),
        ({"a": {"0": 3}, "$initial": {"a": {"0": 0}}, "x": 5}, {"a": {"0": 4}}, 1),
        ({"a": {"0": "3"}}, {"a": {"0": 4}}, 4),
        (None, {"a": {"0": 4}}, None),
        ({"a": {"0": 4}}, None, None),
        ("not JSON", {"a": {"0": 4}}, None),
        ("[]", {"a": {"0": 4}}, None),
    ],
)
def test_the_lag_is_the_distance_between_two_offsets(end: Any, latest: Any, expected: int | None) -> None:
    assert lag_of(end, latest) == expected
    query = FakeQuery()
    query.lastProgress = {"sources": [{"endOffset": end, "latestOffset": latest}]}
    assert running(query).lag() == expected


@pytest.mark.parametrize("progress", [None, {"sources": []}, {"sources": [{}]}])
def test_a_query_without_progress_has_no_lag(progress: Any) -> None:
    query = FakeQuery()
    query.lastProgress = progress
    assert running(query).lag() is None


def test_the_failure_is_the_original_exception_if_it_is_known() -> None:
    query, gate = FakeQuery(), BatchGate()
    assert running(query, gate).failure() is None
    query.error = RuntimeError("the text of Spark")
    assert running(query, gate).failure() is query.error
    original = ValueError("the cause")

    def fail() -> None:
        raise original

    with pytest.raises(ValueError, match="the cause"):
        gate.run(3, fail)
    assert running(query, gate).failure() is original
    query.error = None
    assert running(query, gate).failure() is None


class FakeTime:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 100.0
        self.pauses = 0
        self.then: Any = lambda: None
        monkeypatch.setattr(queries, "time", SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.seconds))

    def sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.seconds += seconds
        self.then()


def test_a_stop_waits_for_the_running_batch_and_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, query, gate = FakeTime(monkeypatch), FakeQuery(), BatchGate()
    seen: list[bool] = []

    def work() -> None:
        # The stop begins while the batch runs. The batch ends during the second pause.
        def then() -> None:
            seen.append(query.is_stopped)
            if clock.pauses == 2:
                gate._busy = False
                gate.last = 4
            if clock.pauses == 5:
                query.lastProgress = {"batchId": 4}

        clock.then = then
        query.lastProgress = {"batchId": 3}
        running(query, gate).stop()

    gate.run(4, work)
    assert clock.pauses == 5
    assert not any(seen)
    assert query.is_stopped
    with pytest.raises(QueryStopping, match="batch 5 was not started"):
        gate.run(5, lambda: None)


def test_a_stop_does_not_wait_forever_for_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, query, gate = FakeTime(monkeypatch), FakeQuery(), BatchGate()
    gate.run(4, lambda: None)
    running(query, gate).stop()
    assert 20 <= clock.seconds - 100 < 20.1
    assert query.is_stopped


def test_a_stop_waits_for_the_commit_of_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, query, gate = FakeTime(monkeypatch), FakeQuery(), BatchGate()
    gate.run(0, lambda: None)

    def then() -> None:
        if clock.pauses == 3:
            query.lastProgress = {"batchId": 0}

    clock.then = then
    running(query, gate).stop()
    assert clock.pauses == 3
    assert query.is_stopped


@pytest.mark.parametrize("checks", [0, 1])
def test_a_query_that_has_ended_or_has_no_batch_stops_at_once(monkeypatch: pytest.MonkeyPatch, checks: int) -> None:
    clock, query, gate = FakeTime(monkeypatch), FakeQuery(), BatchGate()
    running(query).stop()
    gate.run(0, lambda: None)
    ended = FakeQuery(checks)
    running(ended, gate).stop()
    assert clock.pauses == 0
    assert query.is_stopped
    assert ended.is_stopped


@pytest.mark.parametrize(
    ("seconds", "trigger"),
    [(None, {"availableNow": True}), (0.25, {"processingTime": "250 milliseconds"})],
)
def test_a_query_starts_with_its_checkpoint_and_trigger(seconds: float | None, trigger: dict[str, Any]) -> None:
    calls: dict[str, Any] = {}

    class Writer:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                calls[name] = arguments or options
                return FakeQuery() if name == "start" else self

            return call

    worked: list[tuple[Any, int]] = []
    frame: Any = SimpleNamespace(writeStream=Writer())
    found = start("q", frame, "/state", lambda rows, number: worked.append((rows, number)), seconds=seconds)
    assert calls["trigger"] == trigger
    assert calls["option"] == ("checkpointLocation", "/state")
    assert (calls["queryName"], calls["outputMode"]) == (("q",), ("append",))
    (each,) = calls["foreachBatch"]
    each("rows", 7)
    assert worked == [("rows", 7)]
    assert (found.name, found.source, found.gate.last) == ("q", None, 7)
