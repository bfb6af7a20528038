"""Pipelines that run until they are stopped, including a restart for a new schema version."""

import io
import json
import logging
import threading
import time
from collections.abc import Callable

import pytest
from pyspark.logger import PySparkLogger

from headgate.serdes import Reason
from headgate.spark_udfs.pipeline.command import plan_pipeline
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.run import Runner
from tests.spark.pipeline.conftest import ORDER, Place, letters_of, order

TIMEOUT_SECONDS = 120.0
"""Timeout on a loaded machine. The tests wait for conditions, not for this time."""

LIVE = """
[sources.orders]
type = "topic"
topic = "{orders}"
on_new_version = "RESTART"
[sinks.lake]
type = "parquet"
from = "orders"
path = "{folder}/lake"
[dead_letters]
type = "parquet"
path = "{folder}/dead"
"""


def newer_order() -> str:
    schema = json.loads(ORDER)
    schema["fields"].append({"name": "note", "type": "string", "default": "none"})
    return json.dumps(schema)


def until(condition: Callable[[], bool], thread: threading.Thread) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert thread.is_alive(), "the pipeline ended"
        assert time.monotonic() < deadline, "timeout"
        time.sleep(0.05)


def test_a_running_pipeline_restarts_for_a_new_schema_and_stops_after_the_running_batch(
    place: Place,
) -> None:
    place.register("orders", ORDER)
    place.send("orders", ORDER, [order(1), b"poison"])
    runner = Runner(place.spark, place.pipeline(LIVE, trigger="100 ms"))
    logged: list[str] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            runner.run(log=logged.append)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: bool(runner.metrics.document()["read"] == 2), thread)
        place.register("orders", newer_order())
        place.send("orders", newer_order(), [{**order(2), "note": "thanks"}])
        until(lambda: bool(runner.metrics.document()["read"] == 3), thread)
    finally:
        runner.stop()
        thread.join(TIMEOUT_SECONDS)
    assert not thread.is_alive()
    assert failures == []
    done = runner.metrics.document()
    assert (done["good"], done["poison"], done["restarts"]) == (2, 1, 1)
    assert any("new schema version" in each for each in logged)
    # The first row was written before the field existed.
    rows = {row["id"]: row.get("note") for row in place.parquet_merged("lake")}
    assert rows == {1: None, 2: "thanks"}
    (row,) = place.parquet("dead")
    assert row["reason"] == "BAD_MAGIC"
    (letter,) = letters_of(str(place.folder / "dead"))
    assert (letter.origin.topic, letter.origin.offset, letter.origin.value) == (row["topic"], row["offset"], row["raw"])
    assert (letter.reason, letter.application, letter.failed_at_ms is not None) == (Reason.BAD_MAGIC, "test", True)

    # The checkpoint prevents a second read.
    assert place.run(LIVE)["read"] == 0


def test_an_unreachable_registry_fails_the_start(place: Place) -> None:
    with pytest.raises(PipelineError, match="does not respond") as caught:
        place.run(LIVE, **{"registry.url": "http://127.0.0.1:1", "registry.retries": "0"})
    assert caught.value.unreachable


def test_poison_fails_the_batch_with_the_policy_fail(place: Place) -> None:
    place.register("orders", ORDER)
    place.send("orders", ORDER, [order(1), b"\x01\x02\x03\x04\x05\x06"])
    with pytest.raises(PipelineError, match=r"1 rows of a batch cannot be read.*BAD_MAGIC.*bytes 010203040506"):
        place.run(LIVE, on_poison="FAIL")
    assert list((place.folder / "lake").iterdir()) == []


def test_an_invalid_transform_is_reported_once(place: Place) -> None:
    log, printed = PySparkLogger.getLogger("SQLQueryContextLogger"), io.StringIO()
    log.setLevel(logging.WARNING)
    log.addHandler(handler := logging.StreamHandler(printed))
    place.register("orders", ORDER)
    text = f'''
checkpoint = "state"
registry.url = "{place.registry}"
[sources.orders]
type = "topic"
topic = "{place.topic("orders")}"
on_poison = "DROP"
[transforms.t]
type = "sql"
sql = "SELECT idd FROM orders"
[sinks.c]
type = "console"
from = "t"
'''
    file = place.folder / "wrong.toml"
    file.write_text(text)
    with pytest.raises(PipelineError, match=r"transform t: .*idd"):
        plan_pipeline(file, {})
    log.removeHandler(handler)
    assert printed.getvalue() == ""
