"""Runs of a pipeline: order of the queries, lag, errors, restarts and stop."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headgate.spark_udfs.pipeline.batch_gate import QueryStopping
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.queries import POLL_SECONDS
from headgate.spark_udfs.pipeline.run import LAG_SECONDS
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.tables import TopicTable
from headgate.spark_udfs.spec.policy import RESTART_SENTENCE
from tests.unit.spark_udfs.fake_spark import schema
from tests.unit.spark_udfs.pipeline.run_harness import ROWS, FakeRunning, Harness

pytestmark = pytest.mark.usefixtures("columns_without_session")


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Harness:
    return Harness(monkeypatch, tmp_path)


def test_one_run_fills_tables_before_streams_and_stateful_queries_last(harness: Harness) -> None:
    progress: list[int] = []
    harness.run(once=True, on_progress=lambda: progress.append(1))
    assert [each for each in harness.log if not each.startswith("write createDataFrame")] == [
        "outline",
        "start people seconds=None",
        "start orders seconds=None",
        "write poll 0 prices 0",
        "write poll 1 prices 1",
        "start counts seconds=None mode=append",
    ]
    # Tables are written after they are filled and before the streams start.
    table = harness.log.index("write createDataFrame([]) table-known 0")
    assert harness.log.index("start people seconds=None") < table < harness.log.index("start orders seconds=None")
    assert harness.polled.polls == 1
    # Each query is observed before every pause and after its end, each polled batch once.
    assert len(progress) == 3 * 3 + 2
    assert harness.session.settings["spark.sql.session.timeZone"] == "UTC"


def test_queries_of_a_continuous_run_have_intervals_and_stop_together(harness: Harness) -> None:
    def wait() -> None:
        if harness.waits == 40:
            harness.runner.stop()

    harness.on_wait = wait
    harness.run()
    assert harness.starts() == [
        "start people seconds=None",
        "start people seconds=7.0",
        "start orders seconds=3.0",
        "start counts seconds=3.0 mode=append",
    ]
    # No query starts a batch while another one stops.
    assert harness.log[-6:] == [
        "close people",
        "close orders",
        "close counts",
        "stop people",
        "stop orders",
        "stop counts",
    ]
    # One pass over the database at each start.
    assert harness.polled.polls == 1


def test_a_database_is_polled_at_every_trigger(harness: Harness) -> None:
    harness.polled.is_one_pass = False
    times: list[float] = []
    harness.on_wait = lambda: harness.runner.stop() if harness.now >= 109.5 else None
    original = harness.polled.poll

    def poll(spark: Any, checkpoint: Any) -> Any:
        times.append(harness.now)
        return original(spark, checkpoint)

    harness.polled.poll = poll  # type: ignore[method-assign]
    harness.run()
    assert len(times) == 4
    assert all(3 <= later - earlier < 3.5 for earlier, later in pairwise(times))


def test_changes_of_a_window_are_emitted_in_update_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    harness = Harness(monkeypatch, tmp_path, "changes")
    harness.run(once=True)
    assert harness.starts()[-1] == "start counts seconds=None mode=update"
    assert harness.frames["counts"].plan.startswith(
        "readStream.schema(struct<at:timestamp,headgate_batch:string>).option(cleanSource, delete)"
        f".parquet({harness.pipeline.checkpoint}/staged/counts/orders).drop(headgate_batch)"
    )


def test_a_batch_of_a_query_writes_its_sinks_and_its_stage(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[tuple[str, int]] = []

    def stage(self: Any, rows: Any, batch: Any) -> Written:
        staged.append((rows.plan, batch.number))
        return Written(1)

    monkeypatch.setattr("headgate.spark_udfs.pipeline.sinks.parquet.ParquetWriter.write", stage)
    harness.run(once=True)
    harness.session.answers.insert(
        0, ("groupBy(reason)", [{"reason": None, "count": 4}, {"reason": "NULL", "count": 1}])
    )
    decoded = harness.session.frame(schema(reason="string"), "rows")
    harness.works["orders"](decoded, 7)
    assert harness.log[-1] == "write rows.where(reason IS NULL) orders 7"
    assert staged == [("rows.where(reason IS NULL)", 7)]
    harness.session.actions.clear()
    harness.works["counts"](harness.session.frame(ROWS, "counted"), 8)
    assert harness.log[-1] == "write counted counts 8"
    assert harness.session.actions == ["persist", "unpersist"]


def test_the_lag_is_updated_once_per_interval_and_at_the_end(harness: Harness) -> None:
    harness.checks = 1 + round(2.5 * LAG_SECONDS / POLL_SECONDS)
    lags: list[tuple[str, int]] = []
    harness.runner.metrics.lag = lambda source, records: lags.append((source, records or 0))  # type: ignore[method-assign]
    harness.run(once=True)
    assert [source for source, _ in lags].count("people") == 4
    assert ("orders", 5) in lags
    assert harness.queries["counts"].lags == 0
    lags.clear()

    def without_lag(each: FakeRunning) -> None:
        each.lag_now = None

    harness.on_start = without_lag
    harness.run(once=True)
    assert lags == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("orders", r"source orders: Spark failed\. full"), ("counts", r"transform counts: Spark failed\. full")],
)
def test_the_failure_of_a_query_has_the_name_of_its_step(harness: Harness, name: str, message: str) -> None:
    def start(each: FakeRunning) -> None:
        if each.name == name:
            each.error = OSError("full")

    harness.on_start = start
    with pytest.raises(PipelineError, match=message):
        harness.run(once=True)
    assert harness.log[-2:] == [f"close {name}", f"stop {name}"]
    named = PipelineError("sink lake: full")

    def fail(each: FakeRunning) -> None:
        each.error = named

    harness.on_start = fail
    with pytest.raises(PipelineError) as caught:
        harness.run(once=True)
    assert caught.value is named


def test_a_stopped_query_is_no_failure(harness: Harness) -> None:
    def start(each: FakeRunning) -> None:
        each.error = QueryStopping("batch 3 was not started")

    harness.on_start = start
    harness.run(once=True)
    assert harness.starts()[-1].startswith("start counts")


def test_a_new_version_restarts_the_pipeline(harness: Harness) -> None:
    failures = [RuntimeError(RESTART_SENTENCE)] * 2
    lines: list[str] = []

    def start(each: FakeRunning) -> None:
        if each.name == "orders" and failures:
            each.error = failures.pop()

    harness.on_start = start
    harness.run(once=True, log=lines.append)
    assert harness.log.count("outline") == 3
    assert lines == ["restarting to read with a new schema version"] * 2
    assert harness.runner.metrics.document()["restarts"] == 2


def test_a_stopped_pipeline_does_not_restart(harness: Harness) -> None:
    def start(each: FakeRunning) -> None:
        if each.name == "orders":
            harness.runner.stop()
            each.query.checks = 0
            each.error = RuntimeError(RESTART_SENTENCE)

    harness.on_start = start
    harness.run(once=True)
    assert harness.log.count("outline") == 1


@pytest.mark.parametrize(("at", "last"), [("people", "people"), ("orders", "orders")])
def test_a_stop_ends_one_run_after_the_running_batches(harness: Harness, at: str, last: str) -> None:
    harness.checks = 10**6

    def wait() -> None:
        if at in harness.queries:
            harness.runner.stop()
        elif harness.queries:
            harness.queries["people"].query.checks = 0

    harness.on_wait = wait
    harness.run(once=True)
    assert harness.starts()[-1] == f"start {last} seconds=None"
    assert harness.log[-2:] == [f"close {last}", f"stop {last}"]
    assert harness.polled.polls == 0


def test_a_stop_ends_polling_after_the_current_batch(harness: Harness) -> None:
    harness.polled.batches = 5

    def progress() -> None:
        if "write poll 1 prices 1" in harness.log:
            harness.runner.stop()

    harness.run(once=True, on_progress=progress)
    assert harness.log[-1] == "write poll 1 prices 1"


def test_tables_are_written_when_their_rows_have_changed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TopicTable, "version", lambda self: harness.now >= 110)
    harness.on_wait = lambda: harness.runner.stop() if harness.now > 118 else None
    harness.run()
    written = [each.rpartition(" ") for each in harness.log if "table-known" in each]
    assert [number for _, _, number in written] == ["0", "1"]
    # The next start continues with the next number.
    harness.runner._stop.clear()
    harness.on_wait = lambda: None
    harness.run(once=True)
    assert [each.rpartition(" ")[2] for each in harness.log if "table-known" in each] == ["0", "1", "2"]
