"""The command that runs a pipeline: metrics, signals, exit codes."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.spark_udfs.extra import MissingExtra
from headgate.spark_udfs.pipeline import __main__ as module
from headgate.spark_udfs.pipeline import command
from headgate.spark_udfs.pipeline.command import RunOptions, run_pipeline
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineError, PipelineMistakes

FILE = Path("p.toml")


class FakeRunner:
    """Runs a scenario instead of a pipeline."""

    def __init__(self, scenario: Any, metrics: Any) -> None:
        self.scenario = scenario
        self.metrics = metrics
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1

    def run(self, *, once: bool, on_progress: Callable[[], None], log: Callable[[str], None]) -> None:
        self.once = once
        self.scenario(self, on_progress)


class FakeProgress:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown = 0
        self.is_closed = False

    def say(self, text: str) -> None:
        self.lines.append(text)

    def show(self, _document: Any) -> None:
        self.shown += 1

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, object], FakeProgress]]:
    monkeypatch.setattr(command, "load", lambda _file, overrides: SimpleNamespace(name="shop", overrides=overrides))
    monkeypatch.setattr(command, "open_session", lambda _pipeline: None)

    def run(scenario: Any, progress: FakeProgress | None = None, **options: Any) -> Any:
        monkeypatch.setattr(command, "Runner", lambda _spark, _pipeline, metrics: FakeRunner(scenario, metrics))
        shown: Any = progress or FakeProgress()
        return run_pipeline(FILE, RunOptions(**options), progress=shown), shown

    return run


def test_the_metrics_are_returned_and_shown(run: Any) -> None:
    def scenario(runner: FakeRunner, on_progress: Callable[[], None]) -> None:
        assert runner.once
        runner.metrics.declare(["orders"], [])
        runner.metrics.batch("orders", 5, {})
        on_progress()
        on_progress()

    document, progress = run(scenario, once=True)
    assert document["read"] == 5
    assert progress.shown == 2
    assert progress.is_closed
    assert progress.lines[0] == "starting Spark for shop"


def test_the_metrics_file_is_written_first_then_once_per_second_and_at_the_end(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "metrics.json"
    clock = SimpleNamespace(now=500.0)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def stored() -> int:
        return int(json.loads(file.read_text())["read"])

    def scenario(runner: FakeRunner, on_progress: Callable[[], None]) -> None:
        assert stored() == 0
        runner.metrics.declare(["orders"], [])
        for count, seconds, expected in ((1, 0.0, 1), (1, 0.9, 1), (1, 0.1, 3), (1, 0.0, 3)):
            runner.metrics.batch("orders", count, {})
            clock.now += seconds
            on_progress()
            assert stored() == expected

    run(scenario, metrics_json=file)
    assert stored() == 4


def test_a_disk_error_while_the_pipeline_runs_does_not_stop_it(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()

    def scenario(_runner: FakeRunner, on_progress: Callable[[], None]) -> None:
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
        on_progress()

    run(scenario, metrics_json=folder / "metrics.json")
    with pytest.raises(PipelineError, match="--metrics-json: cannot write"):
        run(scenario, metrics_json=folder / "metrics.json")


@pytest.mark.parametrize("listen", ["9464", ":9464", "localhost", "localhost:", "localhost:x", "localhost:65536"])
def test_an_invalid_address_for_metrics_is_rejected(run: Any, listen: str) -> None:
    with pytest.raises(PipelineError, match="--metrics-listen: expected HOST:PORT"):
        run(lambda *_: None, metrics_listen=listen)


@pytest.mark.parametrize(
    ("listen", "expected"),
    [("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:65535", ("::1", 65535)), ("h:0", ("h", 0))],
)
def test_metrics_are_served_while_the_pipeline_runs(
    run: Any, monkeypatch: pytest.MonkeyPatch, listen: str, expected: tuple[str, int]
) -> None:
    served: list[Any] = []

    def serve(_metrics: Any, host: str, port: int) -> Callable[[], None]:
        served.append((host, port))
        return lambda: served.append("stopped")

    monkeypatch.setattr(command, "serve_prometheus", serve)

    def scenario(*_: Any) -> None:
        assert served == [expected]
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        run(scenario, metrics_listen=listen)
    assert served == [expected, "stopped"]

    def refuse(*_: Any) -> None:
        raise OSError("in use")

    monkeypatch.setattr(command, "serve_prometheus", refuse)
    with pytest.raises(PipelineError, match="cannot listen on"):
        run(scenario, metrics_listen=listen)


def test_a_signal_stops_after_the_running_batch_and_a_second_ctrl_c_at_once(run: Any) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def scenario(runner: FakeRunner, _on_progress: Callable[[], None]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert runner.stops == 1
        os.kill(os.getpid(), signal.SIGTERM)
        assert runner.stops == 2
        os.kill(os.getpid(), signal.SIGINT)

    progress = FakeProgress()
    with pytest.raises(KeyboardInterrupt):
        run(scenario, progress)
    assert any("stopping after the running batch" in line for line in progress.lines)
    assert progress.is_closed
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (None, 0, ""),
        (KeyboardInterrupt(), 130, ""),
        (PipelineMistakes("p.toml", [Mistake("a", 3, "unknown")]), 2, "unknown"),
        (PipelineError("broken", why="because", advice="repair it"), 1, "error: broken\n  why: because\n  try: repair"),
        (PipelineError("down", unreachable=True), 4, "error: down\n"),
        (MissingExtra("spark"), 1, "error: "),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    code: int,
    printed: str,
) -> None:
    seen: list[RunOptions] = []

    def run_pipeline(file: Path, options: RunOptions) -> dict[str, object]:
        assert file == FILE
        seen.append(options)
        if error is not None:
            raise error
        return {"read": 5}

    monkeypatch.setattr(module, "run_pipeline", run_pipeline)
    assert module.main(["p.toml", "--once", "--json", "--set", "a=b", "--metrics-listen", "h:1"]) == code
    captured = capsys.readouterr()
    assert printed in captured.err
    assert captured.out == ('{"read": 5}\n' if code == 0 else "")
    assert seen == [RunOptions(True, None, "h:1", {"a": "b"})]
    assert module.main(["p.toml"]) == code
    assert seen[1] == RunOptions()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_plan_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    plan = SimpleNamespace(as_json=lambda: {"steps": ["é"]}, as_text=lambda: "the plan")
    monkeypatch.setattr(module, "plan_pipeline", lambda _file, _overrides: plan)
    assert module.main(["p.toml", "--plan", *(["--json"] if as_json else [])]) == 0
    out = capsys.readouterr().out
    assert out == ('{\n  "steps": [\n    "é"\n  ]\n}\n' if as_json else "the plan\n")
