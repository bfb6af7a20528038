"""Metrics as JSON, for Prometheus, and as a progress line."""

import io
import json
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from headgate.spark_udfs.pipeline.command import RunOptions, run_pipeline
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.metrics import Metrics, prometheus_registry
from headgate.spark_udfs.pipeline.progress import PLAIN_SECONDS, Progress, line_of
from headgate.spark_udfs.pipeline.queries import lag_of


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def counted(clock: Clock) -> Metrics:
    metrics = Metrics("p", clock)
    metrics.declare(["orders", "clicks"], ["lake"])
    clock.now += 10
    metrics.batch("orders", 8, {"TRUNCATED": 1, "NULL": 1})
    metrics.batch("orders", 10, {"NULL": 2})
    metrics.written("lake", 17, 1, repeated=False)
    metrics.lag("orders", 5)
    return metrics


def test_counts_add_up() -> None:
    document = counted(Clock()).document()
    assert (document["read"], document["good"], document["poison"]) == (22, 18, 4)
    assert document["read"] == document["good"] + document["poison"]
    assert document["poison_by_reason"] == {"NULL": 3, "TRUNCATED": 1}
    assert document["sources"]["clicks"] == {
        "read": 0, "good": 0, "poison": 0, "poison_by_reason": {}, "batches": 0, "lag": None,
    }  # fmt: skip
    assert document["sinks"]["lake"] == {"rows": 17, "refused": 1, "repeated_batches": 0}
    assert (document["lag"], document["rows_per_second"]) == (5, 2.2)


def test_the_row_rate_covers_the_last_30_seconds() -> None:
    clock = Clock()
    metrics = counted(clock)
    clock.now += 60
    assert metrics.document()["rows_per_second"] == 0.0


def test_prometheus_has_the_same_counts() -> None:
    text = generate_latest(prometheus_registry(counted(Clock()))).decode()
    assert 'headgate_pipeline_rows_read_total{pipeline="p",source="orders"} 22.0' in text
    assert 'headgate_pipeline_rows_poison_total{pipeline="p",reason="NULL",source="orders"} 3.0' in text
    assert 'headgate_pipeline_rows_written_total{pipeline="p",sink="lake"} 17.0' in text
    assert 'headgate_pipeline_lag_records{pipeline="p",source="orders"} 5.0' in text


def test_the_metrics_file_is_replaced_atomically(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text("old")
    counted(Clock()).write_json(file)
    assert json.loads(file.read_text())["read"] == 22
    assert [each.name for each in tmp_path.iterdir()] == ["m.json"]


def test_an_unwritable_metrics_file_fails_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        'checkpoint = "s"\n[sources.a]\ntype = "topic"\non_poison = "DROP"\n[sinks.c]\ntype = "console"\nfrom = "a"\n'
    )
    with pytest.raises(PipelineError, match=r"--metrics-json: cannot write .*no/m\.json\. No such file"):
        run_pipeline(file, RunOptions(metrics_json=tmp_path / "no" / "m.json"))


def test_the_progress_line_contains_all_counts() -> None:
    line = line_of(counted(Clock()).document())
    assert line == "22 read · 18 good · 4 poison (NULL 3, TRUNCATED 1) · 1 refused by sinks · lag 5 · 2 rows/s"


def test_without_a_terminal_changed_lines_are_logged_periodically() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)
    metrics = Metrics("p", clock)
    for _ in range(5):
        progress.show(metrics.document())
    assert out.getvalue() == ""
    for _ in range(3):
        clock.now += PLAIN_SECONDS
        progress.show(metrics.document())
    assert out.getvalue().count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_live_line_below_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    clock, out = Clock(), Terminal()
    progress = Progress(out, clock)
    progress.show(counted(clock).document())
    progress.say("[bold] is no markup")
    progress.close()
    progress.say("done")
    text = out.getvalue()
    assert "22 read · 18 good · 4 poison" in text
    assert "[bold] is no markup" in text
    assert text.endswith("done\n")


def test_lag_is_the_difference_of_offsets() -> None:
    assert lag_of('{"t": {"0": 5, "1": 7}}', '{"t": {"0": 9, "1": 7, "2": 3}}') == 7
    assert lag_of({"t": {"0": 9}}, {"t": {"0": 5}}) == 0
    assert lag_of(None, '{"t": {"0": 9}}') is None
    assert lag_of("no json", "{}") is None
