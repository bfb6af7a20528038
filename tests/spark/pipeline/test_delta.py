"""Delta Lake for real: tables that pipelines add to and upsert into, and a table that payloads are decoded from."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_udfs import decode_frame
from spark_udfs.pipeline.checkpoints import BatchId
from spark_udfs.pipeline.mistakes import PipelineError
from spark_udfs.pipeline.model import DeltaSink, Mode
from spark_udfs.pipeline.sinks.delta import DeltaWriter
from spark_udfs.pipeline.sinks.writer import Written
from tests.conftest import unavailable
from tests.live.spark_jars import JarsUnavailable, delta_jars
from tests.spark.pipeline.conftest import ORDER, Place, order

TABLES = """
[sources.orders]
type = "topic"
topic = "{orders}"
[sinks.all]
type = "delta"
from = "orders"
path = "{folder}/all"
partition_by = ["customer"]
evolve = true
[sinks.latest]
type = "delta"
from = "orders"
path = "{folder}/latest"
mode = "upsert"
keys = ["customer"]
evolve = true
[sinks.stop]
type = "function"
from = "orders"
function = "delta_stop:write"
[dead_letters]
type = "delta"
path = "{folder}/dead"
"""
STOP = """
failing = True
def write(rows, batch):
    if failing:
        raise RuntimeError("the last sink has failed")
"""


@pytest.fixture(autouse=True)
def _delta() -> None:
    try:
        delta_jars()
    except JarsUnavailable as error:
        unavailable(str(error))


@pytest.fixture
def stop(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The last of the sinks, which fails as long as it is told to."""
    import importlib

    (place.folder / "delta_stop.py").write_text(STOP)
    monkeypatch.setattr(sys, "path", [str(place.folder), *sys.path])
    yield importlib.import_module("delta_stop")
    sys.modules.pop("delta_stop", None)


def rows_of(place: Place, path: str | Path) -> list[dict[str, Any]]:
    return [row.asDict() for row in place.spark.read.format("delta").load(str(place.folder / path)).collect()]


def test_each_row_is_in_the_tables_once_even_when_a_batch_is_done_again_and_a_new_column_is_added(
    place: Place, stop: Any
) -> None:
    place.register("orders", ORDER)
    # No folder can be called that, and the table of all orders has one for each customer.
    odd = order(4, "nul\0l")
    place.send("orders", ORDER, [order(1), b"poison", order(2, "bob"), None, order(3), odd], keys=["k"] * 6)
    with pytest.raises(PipelineError, match="the last sink has failed"):
        place.run(TABLES)
    stop.failing = False
    done = place.run(TABLES)
    assert (done["read"], done["good"], done["poison"]) == (6, 4, 2)
    assert done["sinks"]["all"] == {"rows": 0, "refused": 0, "repeated_batches": 1}
    assert done["sinks"]["latest"] == {"rows": 0, "refused": 0, "repeated_batches": 1}
    assert sorted(row["id"] for row in rows_of(place, "all")) == [1, 2, 3]
    # Of one key's rows the last of the partition counts.
    assert {row["customer"]: row["id"] for row in rows_of(place, "latest")} == {"ada": 3, "bob": 2, "nul\0l": 4}
    dead = {row["reason"]: row for row in rows_of(place, "dead")}
    assert len(rows_of(place, "dead")) == 3
    assert dead.keys() == {"BAD_MAGIC", "NULL", "INVALID_VALUE"}
    assert (dead["BAD_MAGIC"]["raw"], dead["BAD_MAGIC"]["topic"]) == (b"poison", place.topic("orders"))
    assert dead["INVALID_VALUE"]["source"] == "sink all"
    assert json.loads(dead["INVALID_VALUE"]["raw"])["id"] == 4

    newer = json.loads(ORDER)
    newer["fields"].append({"name": "note", "type": "string", "default": "none"})
    place.register("orders", json.dumps(newer))
    place.send("orders", json.dumps(newer), [{**order(5, "bob"), "note": "thanks"}], keys=["k"])
    done = place.run(TABLES)
    assert done["read"] == 1, "it goes on where it stopped"
    assert done["sinks"]["all"] == {"rows": 1, "refused": 0, "repeated_batches": 0}
    assert {row["id"]: row["note"] for row in rows_of(place, "all")} == {1: None, 2: None, 3: None, 5: "thanks"}
    latest = {row["customer"]: (row["id"], row["note"]) for row in rows_of(place, "latest")}
    assert latest == {"ada": (3, None), "bob": (5, "thanks"), "nul\0l": (4, None)}


@pytest.mark.parametrize("sink", [DeltaSink("d", "x", ""), DeltaSink("d", "x", "", Mode.UPSERT, keys=("id",))])
def test_delta_itself_passes_over_a_batch_that_it_knows(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: DeltaSink
) -> None:
    writer = DeltaWriter(replace(sink, path=str(tmp_path / "t")), place.spark)
    first = place.spark.createDataFrame([(1, "first")], "id long, who string")
    other = place.spark.createDataFrame([(1, "again"), (2, "again")], "id long, who string")
    writer.check(first.schema)
    assert writer.write(first, batch(3)) == Written(1)
    assert writer.write(other, batch(3)) == Written(0, repeated=True)
    # Asked or not.
    monkeypatch.setattr(DeltaWriter, "_last_batch", lambda *_: None)
    writer.write(other, batch(3))
    assert rows_of(place, "t") == [{"id": 1, "who": "first"}]


def test_a_table_keeps_the_columns_that_rows_do_not_have_and_grows_only_when_it_may(
    place: Place, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    narrow = place.spark.createDataFrame([(1, "a"), (2, "b")], "id long, `who` string")
    wide = place.spark.createDataFrame([(1, "c", "n", 7)], "id long, who string, note string, position int")
    fixed = DeltaWriter(DeltaSink("d", "x", path, Mode.UPSERT, keys=("id",)), place.spark)
    growing = DeltaWriter(DeltaSink("d", "x", path, Mode.UPSERT, keys=("id",), evolve=True), place.spark)
    fixed.check(narrow.schema)
    assert fixed.write(narrow, batch(0)) == Written(2)
    with pytest.raises(PipelineError, match=r"has no column note\. it has id, who\. add it, .*evolve = true"):
        fixed.check(wide.schema)
    growing.check(wide.schema)
    assert growing.write(wide, batch(1)) == Written(1)
    fixed.check(narrow.schema)
    assert fixed.write(narrow, batch(2)) == Written(2)
    assert sorted(rows_of(place, path), key=str) == [
        {"id": 1, "who": "a", "note": "n", "position": 7},
        {"id": 2, "who": "b", "note": None, "position": None},
    ]
    commits = list((tmp_path / "t" / "_delta_log").glob("*.json"))
    # Made, three merges, one change of columns: a check that finds nothing to do leaves nothing behind.
    assert len(commits) == 5


def test_a_table_that_cannot_take_the_rows_is_told_before_anything_starts(place: Place, tmp_path: Path) -> None:
    schema = place.spark.createDataFrame([(1, "a")], "id long, who string").schema
    other = place.spark.createDataFrame([("1", "a")], "id string, who string").schema
    (tmp_path / "file").touch()

    def refused(columns: Any, path: str, **settings: Any) -> str:
        with pytest.raises(PipelineError) as caught:
            DeltaWriter(DeltaSink("d", "x", path, **settings), place.spark).check(columns)
        return str(caught.value)

    there = str(tmp_path / "t")
    DeltaWriter(DeltaSink("d", "x", there), place.spark).check(schema)
    assert "Failed to merge fields 'id' and 'id'" in refused(other, there)
    assert "metadata mismatch" in refused(schema, there, partition_by=("who",))
    assert "there is no column ids" in refused(schema, there, mode=Mode.UPSERT, keys=("ids",))
    assert 'No FileSystem for scheme "nowhere"' in refused(schema, "nowhere://bucket/t")
    assert f"{tmp_path}/file" in refused(schema, f"{tmp_path}/file")

    class Gone:
        """A session whose Delta was made for another Spark."""

        def __getattr__(self, name: str) -> Any:
            if name == "read":
                raise RuntimeError("java.lang.NoSuchMethodError: 'void org.apache.spark.sql.Some.thing()'")
            return getattr(place.spark, name)

    writer = DeltaWriter(DeltaSink("d", "x", there), Gone())  # type: ignore[arg-type]  # all that a check asks for
    with pytest.raises(PipelineError, match=r"does not work with Spark 4.*NoSuchMethodError.*add its jars for Spark 4"):
        writer.check(schema)


def test_somebody_elses_change_of_the_same_rows_costs_another_attempt(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    mine = place.spark.createDataFrame([(1, "mine")], "id long, who string")
    # In a session of their own: in ours, their rows would bear the mark of our batch.
    theirs = place.spark.newSession().createDataFrame([(1, "theirs"), (2, "theirs")], "id long, who string")
    writer = DeltaWriter(DeltaSink("d", "x", path, Mode.UPSERT, keys=("id",)), place.spark)
    writer.check(mine.schema)
    attempts: list[int] = []
    statement = DeltaWriter._merge_statement

    def beaten(self: DeltaWriter, columns: list[str]) -> str:
        attempts.append(1)
        if len(attempts) == 1:
            theirs.write.format("delta").mode("append").save(path)
            raise RuntimeError(
                "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] files were added"
            )
        return statement(self, columns)

    monkeypatch.setattr(DeltaWriter, "_merge_statement", beaten)
    assert writer.write(mine, batch(0)) == Written(1)
    assert len(attempts) == 2
    assert {row["id"]: row["who"] for row in rows_of(place, path)} == {1: "mine", 2: "theirs"}


def test_payloads_are_decoded_from_a_delta_table(place: Place, tmp_path: Path) -> None:
    place.register("orders", ORDER)
    payloads = place.encode("orders", ORDER, [order(1), b"\0\0", order(2, "bob"), None])
    path, subject = str(tmp_path / "raw"), f"{place.topic('orders')}-value"
    table = place.spark.createDataFrame(list(enumerate(payloads)), "number int, value binary")
    table.write.format("delta").save(path)
    read = place.spark.read.format("delta").load(path)
    decoded = decode_frame(read, subject=subject, registry=place.registry, flat=True).collect()
    assert sorted((row["id"], row["customer"]) for row in decoded if row["reason"] is None) == [(1, "ada"), (2, "bob")]
    assert sorted(row["reason"] for row in decoded if row["reason"] is not None) == ["NULL", "TOO_SHORT"]


def batch(number: int) -> BatchId:
    return BatchId("test", "identity", "query", number)
