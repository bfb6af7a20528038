"""Delta Lake: append and upsert sinks, and decoding of payloads in a Delta table."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark_udfs import decode_frame
from headgate.spark_udfs.pipeline import run
from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Mode
from headgate.spark_udfs.pipeline.sinks.delta import DeltaSink, DeltaWriter
from headgate.spark_udfs.pipeline.sinks.writer import Written
from tests.conftest import unavailable
from tests.live.spark_jars import JarsUnavailable, delta_jars
from tests.spark.pipeline.conftest import ORDER, Place, order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
[sources.orders]
type = "topic"
topic = "{orders}"
[sinks.all]
type = "delta"
from = "orders"
path = "{folder}/all"
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
COLUMNS = "id long, who string"
STOP = """
failing = True
def write(rows, batch):
    if failing:
        raise RuntimeError("the last sink has failed")
"""


CHEAP = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
"""Delta runs dozens of small queries. Adaptive planning and code generation would take most of the time."""


@pytest.fixture(autouse=True)
def _delta(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        delta_jars()
    except JarsUnavailable as error:
        unavailable(str(error))
    monkeypatch.setattr(run, "SESSION_SETTINGS", {**run.SESSION_SETTINGS, **CHEAP})


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    own = spark.newSession()
    for name, value in CHEAP.items():
        own.conf.set(name, value)
    return own


@pytest.fixture
def stop(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the last sink, which fails while `failing` is true."""
    import importlib

    (place.folder / "delta_stop.py").write_text(STOP)
    monkeypatch.setattr(sys, "path", [str(place.folder), *sys.path])
    yield importlib.import_module("delta_stop")
    sys.modules.pop("delta_stop", None)


def rows_of(spark: "SparkSession", path: Path) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.read.format("delta").load(str(path)).collect()]


def test_a_repeated_batch_is_written_once_and_a_new_column_is_added(place: Place, stop: Any) -> None:
    def tables(name: str) -> list[dict[str, Any]]:
        return rows_of(place.spark, place.folder / name)

    place.register("orders", ORDER)
    place.send("orders", ORDER, [order(1), b"poison", order(2, "bob"), order(3)], keys=["k"] * 4)
    with pytest.raises(PipelineError, match="the last sink has failed"):
        place.run(TABLES)
    assert sorted(row["id"] for row in tables("all")) == [1, 2, 3]

    newer = json.loads(ORDER)
    newer["fields"].append({"name": "note", "type": "string", "default": "none"})
    place.register("orders", json.dumps(newer))
    place.send("orders", json.dumps(newer), [{**order(4, "bob"), "note": "thanks"}], keys=["k"])
    stop.failing = False
    done = place.run(TABLES)
    # The uncommitted batch, and the next one.
    assert (done["read"], done["good"], done["poison"]) == (5, 4, 1)
    assert done["sinks"]["all"] == {"rows": 1, "refused": 0, "repeated_batches": 1}
    assert done["sinks"]["latest"] == {"rows": 1, "refused": 0, "repeated_batches": 1}
    assert sorted((row["id"], row["note"]) for row in tables("all")) == [(1, None), (2, None), (3, None), (4, "thanks")]
    # The last row of a key in the partition wins.
    assert sorted((row["customer"], row["id"], row["note"]) for row in tables("latest")) == [
        ("ada", 3, None),
        ("bob", 4, "thanks"),
    ]
    (dead,) = tables("dead")
    assert (dead["reason"], dead["raw"], dead["topic"]) == ("BAD_MAGIC", b"poison", place.topic("orders"))


def test_delta_skips_a_known_batch_and_invalid_partition_values_are_refused(
    session: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[tuple[str, str]] = []
    sink = DeltaSink("d", "x", str(tmp_path / "t"), partition_by=("who",))
    writer = DeltaWriter(sink, session, lambda rows, _: refused.extend(rows))
    first = session.createDataFrame([(1, "fir/st"), (2, "nul\0l"), (3, "é" * 126)], COLUMNS)
    other = session.createDataFrame([(4, "again")], COLUMNS)
    writer.check(first.schema)
    assert writer.write(first, batch(3)) == Written(1, refused=2)
    assert sorted(json.loads(row)["id"] for row, _ in refused) == [2, 3]
    assert writer.write(other, batch(3)) == Written(0, repeated=True)
    # Delta skips the batch even without the check of the sink.
    monkeypatch.setattr(DeltaWriter, "_last_batch", lambda *_: None)
    writer.write(other, batch(3))
    assert rows_of(session, tmp_path / "t") == [{"id": 1, "who": "fir/st"}]


def test_an_upsert_keeps_other_columns_and_rows_and_adds_columns_only_with_evolve(
    session: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    narrow = session.createDataFrame([(1, "a"), (2, "b")], COLUMNS)
    wide = session.createDataFrame([(1, "c", "n", 7)], f"{COLUMNS}, note string, position int")
    # A separate session: the rows of the other writer must not get the batch number of this one.
    theirs = session.newSession().createDataFrame([(2, "theirs"), (3, "theirs")], COLUMNS)
    sink = DeltaSink("d", "x", path, mode=Mode.UPSERT, keys=("id",))
    fixed, growing = DeltaWriter(sink, session), DeltaWriter(replace(sink, evolve=True), session)
    fixed.check(narrow.schema)
    with pytest.raises(PipelineError, match=r"has no column note\. it has id, who\. change the .*evolve = true"):
        fixed.check(wide.schema)
    growing.check(wide.schema)
    assert growing.write(wide, batch(0)) == Written(1)

    statement = DeltaWriter._merge_statement
    attempts: list[list[str]] = []

    def conflicting(self: DeltaWriter, columns: list[str]) -> str:
        attempts.append(columns)
        if len(attempts) == 1:
            theirs.write.format("delta").mode("append").save(path)
            raise RuntimeError("ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] files were added")
        return statement(self, columns)

    monkeypatch.setattr(DeltaWriter, "_merge_statement", conflicting)
    fixed.check(narrow.schema)
    assert fixed.write(narrow, batch(1)) == Written(2)
    assert len(attempts) == 2, "the conflict was retried"
    assert sorted(rows_of(session, tmp_path / "t"), key=lambda row: int(row["id"])) == [
        {"id": 1, "who": "a", "note": "n", "position": 7},
        {"id": 2, "who": "b", "note": None, "position": None},
        {"id": 3, "who": "theirs", "note": None, "position": None},
    ]
    # Creation, a schema change, two merges and the other writer. A check without changes adds no version.
    assert len(list((tmp_path / "t" / "_delta_log").glob("*.json"))) == 5


def test_check_rejects_unsuitable_tables(session: "SparkSession", tmp_path: Path) -> None:
    schema = session.createDataFrame([(1, "a")], COLUMNS).schema
    other = session.createDataFrame([("1", "a")], "id string, who string").schema
    (tmp_path / "file").touch()

    def refused(columns: Any, path: str, **settings: Any) -> str:
        with pytest.raises(PipelineError) as caught:
            DeltaWriter(DeltaSink("d", "x", path, **settings), session).check(columns)
        return str(caught.value)

    there = str(tmp_path / "t")
    DeltaWriter(DeltaSink("d", "x", there), session).check(schema)
    assert "column id is bigint in the table and string in the rows" in refused(other, there)
    assert "metadata mismatch" in refused(schema, there, partition_by=("who",))
    assert "there is no column ids" in refused(schema, there, mode=Mode.UPSERT, keys=("ids",))
    assert 'No FileSystem for scheme "nowhere"' in refused(schema, "nowhere://bucket/t")
    assert f"{tmp_path}/file" in refused(schema, f"{tmp_path}/file")

    class Gone:
        """A session with Delta jars for another Spark version."""

        def __getattr__(self, name: str) -> Any:
            if name == "read":
                raise RuntimeError("java.lang.NoSuchMethodError: 'void org.apache.spark.sql.Some.thing()'")
            return getattr(session, name)

    writer = DeltaWriter(DeltaSink("d", "x", there), Gone())  # type: ignore[arg-type]  # a check uses nothing else
    with pytest.raises(PipelineError, match=r"does not work with Spark 4.*NoSuchMethodError.*add its jars for Spark 4"):
        writer.check(schema)


def test_a_table_in_a_catalog_is_created_widened_and_merged_by_key(session: "SparkSession") -> None:
    sink = DeltaSink("d", "x", None, table=("spark_catalog", "default", "by_name"), mode=Mode.UPSERT, keys=("id",))
    growing = DeltaWriter(replace(sink, evolve=True), session)
    narrow = session.createDataFrame([(1, "a"), (2, "b")], "id int, who string")
    wide = session.createDataFrame([(2, "c", 1), (2**40, "d", 2)], "id bigint, who string, n int")
    try:
        growing.check(narrow.schema)
        assert growing.write(narrow, batch(0)) == Written(2)
        with pytest.raises(PipelineError, match=r"does not widen .* ALTER TABLE .*'delta.enableTypeWidening'"):
            growing.check(wide.schema)
        with pytest.raises(PipelineError, match="narrower column"):
            DeltaWriter(sink, session).check(wide.schema)
        session.sql(f"ALTER TABLE {sink.sql_name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        growing.check(wide.schema)
        assert growing.write(wide, batch(1)) == Written(2)
        assert growing.write(wide, batch(1)) == Written(0, repeated=True)
        # A new driver finds the batch in the table.
        assert DeltaWriter(sink, session).write(wide, batch(1)) == Written(0, repeated=True)
        rows = session.table(sink.sql_name).collect()
        assert sorted((row.id, row.who, row.n) for row in rows) == [(1, "a", None), (2, "c", 1), (2**40, "d", 2)]
    finally:
        session.sql(f"DROP TABLE IF EXISTS {sink.sql_name}")


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
