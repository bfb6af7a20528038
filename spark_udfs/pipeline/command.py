"""Run a pipeline from the command line, with signals, progress and metrics. Used by `headgate pipeline` too."""

import contextlib
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from headgate.spark_udfs.pipeline.assembly import outline
from headgate.spark_udfs.pipeline.checks.load import load
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.metrics import Metrics, serve_prometheus
from headgate.spark_udfs.pipeline.plan import Plan, plan_of
from headgate.spark_udfs.pipeline.progress import Progress, line_of
from headgate.spark_udfs.pipeline.run import Runner
from headgate.spark_udfs.pipeline.session import open_session
from headgate.spark_udfs.pipeline.spark_errors import explained

METRICS_SECONDS = 1.0
"""Interval between updates of the metrics file."""
PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class RunOptions:
    once: bool = False
    metrics_json: Path | None = None
    metrics_listen: str | None = None
    """HOST:PORT."""
    overrides: Mapping[str, str] = field(default_factory=dict)


def run_pipeline(file: Path, options: RunOptions, *, progress: Progress | None = None) -> dict[str, object]:
    """Run until the end or Ctrl-C; the metrics. Raises `PipelineMistakes`, `PipelineError` or `MissingExtra`."""
    pipeline = load(file, overrides=options.overrides)
    shown = progress or Progress()
    metrics = Metrics(pipeline.name)
    if options.metrics_json is not None:
        _first_metrics(metrics, options.metrics_json)
    stop_serving = _serve(metrics, options.metrics_listen)
    try:
        shown.say(f"starting Spark for {pipeline.name}")
        spark = open_session(pipeline)
        _silence_pyspark()
        runner = Runner(spark, pipeline, metrics)
        written_at = 0.0

        def on_progress() -> None:
            nonlocal written_at
            shown.show(metrics.document())
            if options.metrics_json is not None and time.monotonic() >= written_at + METRICS_SECONDS:
                written_at = time.monotonic()
                # A temporarily full disk must not stop the pipeline.
                with contextlib.suppress(OSError):
                    metrics.write_json(options.metrics_json)

        with _stopping(runner, shown):
            runner.run(once=options.once, on_progress=on_progress, log=shown.say)
    finally:
        shown.close()
        if options.metrics_json is not None:
            with contextlib.suppress(OSError):
                metrics.write_json(options.metrics_json)
        stop_serving()
    document = metrics.document()
    shown.say(line_of(document))
    return document


def plan_pipeline(file: Path, overrides: Mapping[str, str]) -> Plan:
    """Raises `PipelineMistakes`, `PipelineError`, `MissingExtra`."""
    pipeline = load(file, overrides=overrides)
    spark = open_session(pipeline)
    _silence_pyspark()
    try:
        return plan_of(pipeline, outline(spark.newSession(), pipeline, None))
    except Exception as error:
        raise explained(error) from error


def _silence_pyspark() -> None:
    """Silence PySpark's log of exceptions, which contains plans and stack traces. The command prints one message."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def parse_overrides(given: list[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` arguments. Raises `PipelineMistakes`."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            message = f"expected KEY=VALUE, such as checkpoint=state, not {text!r}"
            raise PipelineMistakes("the command line", [Mistake("--set", None, message)])
        found[key.strip()] = value
    return found


def _first_metrics(metrics: Metrics, file: Path) -> None:
    """Write the file before Spark starts, so that a wrong path fails immediately."""
    try:
        metrics.write_json(file)
    except OSError as error:
        raise PipelineError(f"--metrics-json: cannot write {file}", why=error.strerror or str(error)) from error


def _serve(metrics: Metrics, listen: str | None) -> Callable[[], None]:
    if listen is None:
        return lambda: None
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > PORT_MAX:
        raise PipelineError(f"--metrics-listen: expected HOST:PORT, such as 127.0.0.1:9464, not {listen!r}")
    try:
        return serve_prometheus(metrics, host.strip("[]"), int(port))
    except OSError as error:
        raise PipelineError(f"--metrics-listen: cannot listen on {listen}", why=str(error)) from error


@contextlib.contextmanager
def _stopping(runner: Runner, shown: Progress) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop after the running micro-batch; a second Ctrl-C stops immediately."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_stopping = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        is_stopping = True
        shown.say("stopping after the running batch (press Ctrl-C again to stop immediately)")
        runner.stop()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_plan(plan: Plan, *, as_json: bool) -> None:
    print(json.dumps(plan.as_json(), indent=2, ensure_ascii=False) if as_json else plan.as_text(), file=sys.stdout)
