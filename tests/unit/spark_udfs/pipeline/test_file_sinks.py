"""Files of checkpoints and tables, the Parquet sink, and partition values."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, StringType, StructType

from headgate.spark_udfs.pipeline import filesystem
from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint, open_checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.model import Mode
from headgate.spark_udfs.pipeline.parquet_columns import check_stored_steps, check_types
from headgate.spark_udfs.pipeline.sinks.parquet import ParquetSink, ParquetWriter
from headgate.spark_udfs.pipeline.sinks.partitions import NAME_BYTES_MAX, refuse_invalid_partitions
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.topology import StatefulQuery, Topology
from tests.unit.spark_udfs.fake_spark import FakeHadoop, FakeObservation, FakeSession, schema

pytestmark = pytest.mark.usefixtures("columns_without_session")

BATCH = BatchId("shop", "0123456789abcdef", "orders", 12)
FOLDER = "headgate_batch=01234567-orders-00000012"


@pytest.fixture
def hadoop() -> FakeHadoop:
    return FakeHadoop()


@pytest.fixture
def files(hadoop: FakeHadoop) -> Files:
    spark: Any = hadoop
    return Files(spark)


def test_a_text_file_is_replaced(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/a"
    assert not files.exists(path)
    files.write_text(path, "ä")
    (tmp_path / "a.new").write_text("an interrupted write")
    files.write_text(path, "new")
    assert files.read_text(path) == "new"
    assert files.names(str(tmp_path)) == ["a"]
    monkeypatch.setattr(filesystem, "TEXT_BYTES_MAX", 2)
    assert files.read_text(path) == "ne"


def test_a_rename_never_replaces(files: Files, hadoop: FakeHadoop, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    files.rename(f"{tmp_path}/a", f"{tmp_path}/new/folder/b")
    assert (tmp_path / "new/folder/b").read_text() == "a"
    (tmp_path / "c").write_text("c")
    with pytest.raises(FileExistsError, match="b exists"):
        files.rename(f"{tmp_path}/c", f"{tmp_path}/new/folder/b")
    hadoop.failing.add("rename")
    with pytest.raises(OSError, match=r"cannot rename .*c to .*d"):
        files.rename(f"{tmp_path}/c", f"{tmp_path}/d")


def test_folders_are_created_listed_and_deleted(files: Files, hadoop: FakeHadoop, tmp_path: Path) -> None:
    assert files.names(f"{tmp_path}/x") == []
    files.make_folder(f"{tmp_path}/x/z")
    files.make_folder(f"{tmp_path}/x/y")
    assert files.names(f"{tmp_path}/x") == ["y", "z"]
    files.delete(f"{tmp_path}/x")
    assert not files.exists(f"{tmp_path}/x")
    files.delete(f"{tmp_path}/x")
    hadoop.failing.add("mkdirs")
    with pytest.raises(PipelineError, match="cannot create the folder /full"):
        files.make_folder("/full")


def test_errors_of_hadoop_become_pipeline_errors(
    files: Files, hadoop: FakeHadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class JavaError(Py4JJavaError):
        def __init__(self) -> None:
            self.java_exception = type("Exception", (), {"getMessage": staticmethod(lambda: "no route")})

    def fail(*arguments: Any) -> Any:
        raise JavaError

    monkeypatch.setattr(hadoop, "mkdirs", fail)
    with pytest.raises(PipelineError, match=r"cannot create the folder /a\. no route"):
        files.make_folder("/a")
    hadoop._jvm.org.apache.hadoop.fs.Path = fail
    with pytest.raises(PipelineError, match=r"cannot access s3a://b/a\. no route") as caught:
        files.exists("s3a://b/a")
    assert "jars" in caught.value.advice


def test_paths_are_joined_with_one_slash() -> None:
    assert filesystem.joined("s3a://bucket/", "a", "b") == "s3a://bucket/a/b"


def pipeline(checkpoint: str, name: str = "shop") -> Any:
    return type("Pipeline", (), {"checkpoint": checkpoint, "name": name})


def test_a_checkpoint_keeps_its_identity(files: Files, tmp_path: Path) -> None:
    folder = f"{tmp_path}/state"
    first = open_checkpoint(files, pipeline(folder))
    assert open_checkpoint(files, pipeline(folder)) == first
    assert first.batch("orders", 3) == BatchId("shop", first.identity, "orders", 3)
    assert (first.query("q"), first.staged("s"), first.table("t")) == (
        f"{folder}/queries/q",
        f"{folder}/staged/s",
        f"{folder}/tables/t",
    )
    other = open_checkpoint(files, pipeline(f"{tmp_path}/other"))
    assert len(other.identity) == 32
    assert other.identity != first.identity


def test_a_checkpoint_of_another_pipeline_is_rejected(files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    open_checkpoint(files, pipeline(str(folder)))
    with pytest.raises(PipelineError, match="belongs to the pipeline shop, not other"):
        open_checkpoint(files, pipeline(str(folder), "other"))
    for text, message in (
        ('{"layout": 2, "pipeline": "shop", "identity": "x"}', "has layout 2; this version reads 1"),
        ('{"layout": 1, "pipeline": "shop"}', "cannot parse"),
        ("[]", "cannot parse"),
        ("{", "cannot parse"),
    ):
        (folder / "pipeline.json").write_text(text)
        with pytest.raises(PipelineError, match=message):
            open_checkpoint(files, pipeline(str(folder)))


def test_a_checkpoint_folder_must_be_empty(files: Files, tmp_path: Path) -> None:
    (tmp_path / "pipeline.json.new").write_text("{")
    open_checkpoint(files, pipeline(str(tmp_path)))
    (tmp_path / "pipeline.json").unlink()
    (tmp_path / "mine").write_text("")
    with pytest.raises(PipelineError, match="contains other files"):
        open_checkpoint(files, pipeline(str(tmp_path)))


def test_a_stored_value_survives_an_interrupted_write(files: Files, tmp_path: Path) -> None:
    checkpoint = Checkpoint(files, str(tmp_path), "shop", "x")
    assert checkpoint.read_json("cursors", "a") is None
    checkpoint.write_json("cursors", "a", {"number": 1})
    assert checkpoint.read_json("cursors", "a") == {"number": 1}
    stored = tmp_path / "cursors" / "a.json"
    stored.rename(f"{stored}.new")
    assert checkpoint.read_json("cursors", "a") == {"number": 1}
    stored.write_text("{")
    assert checkpoint.read_json("cursors", "a") == {"number": 1}
    Path(f"{stored}.new").write_text("{")
    assert checkpoint.read_json("cursors", "a") is None


class Writing(FakeSession):
    """Creates the folder that a writer writes."""

    def answer(self, action: str) -> Any:
        _, written, path = action.partition(".parquet(")
        if written:
            Path(path.removesuffix(")")).mkdir(parents=True, exist_ok=True)
            (Path(path.removesuffix(")")) / "part-0").write_text(str(len(self.actions)))
        return super().answer(action)


@pytest.fixture
def _observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.Observation", FakeObservation)


@pytest.mark.usefixtures("_observed")
def test_a_batch_is_a_folder_that_appears_once(files: Files, tmp_path: Path) -> None:
    session = Writing((".get()", 3))
    sink = ParquetSink("lake", "x", str(tmp_path), ("day",), {"compression": "zstd"})
    rows: Any = session.frame(schema(day="date", id="long"))
    assert ParquetWriter(sink, files).write(rows, BATCH) == Written(3)
    assert files.names(str(tmp_path)) == [FOLDER]
    assert session.actions[0] == (
        "df.observe(count(1) AS rows).write.mode(overwrite).options(compression=zstd).partitionBy(day)"
        f".parquet({tmp_path}/_headgate_01234567-orders-00000012)"
    )
    assert ParquetWriter(sink, files).write(rows, BATCH) == Written(0, repeated=True)
    assert len(session.actions) == 2


@pytest.mark.usefixtures("_observed")
@pytest.mark.parametrize("count", [0, None])
def test_an_empty_batch_has_no_folder(files: Files, tmp_path: Path, count: int | None) -> None:
    session = Writing((".get()", count))
    rows: Any = session.frame(schema(id="long"))
    assert ParquetWriter(ParquetSink("lake", "x", str(tmp_path)), files).write(rows, BATCH) == Written(0)
    assert files.names(str(tmp_path)) == []
    assert "partitionBy" not in session.actions[0]


@pytest.mark.usefixtures("_observed")
def test_all_rows_are_replaced(files: Files, tmp_path: Path) -> None:
    session = Writing((".get()", 1))
    rows: Any = session.frame(schema(id="long"))
    writer = ParquetWriter(ParquetSink("lake", "x", f"{tmp_path}/lake/", mode=Mode.REPLACE), files)
    (tmp_path / "_lake.old").mkdir()
    for _ in range(2):
        assert writer.write(rows, BATCH) == Written(1)
        assert files.names(str(tmp_path)) == ["lake"]
    assert (tmp_path / "lake" / "part-0").read_text() == "2"


def test_unsuitable_columns_of_a_parquet_sink_are_reported(files: Files, tmp_path: Path) -> None:
    writer = ParquetWriter(ParquetSink("lake", "x", f"{tmp_path}/a", ("day",)), files)
    writer.check(schema(day="date"))
    assert files.exists(f"{tmp_path}/a")
    with pytest.raises(PipelineError, match="no column day to partition by"):
        writer.check(schema(id="long"))
    with pytest.raises(PipelineError, match="have a column headgate_batch"):
        writer.check(schema(day="date", headgate_batch="string"))


def test_rows_with_invalid_partition_values_are_refused() -> None:
    session = FakeSession(("toLocalIterator", [('{"day":"x"}',), ('{"day":"y"}',)]))
    rows: Any = session.frame(schema(day="string", at="date", region="binary"))
    refused: list[Any] = []
    kept, count = refuse_invalid_partitions(
        rows, ("day", "at", "region"), lambda found, batch: refused.append((found, batch)), BATCH
    )
    reason = "the partition value cannot be the name of a folder"
    assert refused == [([('{"day":"x"}', reason), ('{"day":"y"}', reason)], BATCH)]
    assert count == 2
    (action,) = session.actions
    assert "contains(CAST(`day` AS STRING), \0)" in action
    # The name of the folder is day=VALUE.
    assert f"%00)), {NAME_BYTES_MAX - len('day=')})" in action
    assert f"%00)), {NAME_BYTES_MAX - len('region=')})" in action
    assert ">(octet_length(regexp_replace(CAST(`day` AS STRING), " in action
    assert "or(or(contains(CAST(`day`" in action
    assert "CAST(`at`" not in action
    assert ", False)).select(to_json(struct(`day`, `at`, `region`))).limit(100001)" in action
    assert kept.plan.startswith("df.where(not(coalesce(or(")


def test_rows_without_text_partitions_are_not_checked() -> None:
    session = FakeSession(("toLocalIterator", []))
    rows: Any = session.frame(schema(day="string", at="date"))
    calls: list[Any] = []

    def refuse(rows: Any, batch: Any) -> None:
        calls.append(rows)

    assert refuse_invalid_partitions(rows, ("at",), refuse, BATCH) == (rows, 0)
    assert refuse_invalid_partitions(rows, ("day",), None, BATCH) == (rows, 0)
    assert session.actions == []
    _, count = refuse_invalid_partitions(rows, ("day",), refuse, BATCH)
    assert (count, calls) == (0, [])


def topology(*tables: str) -> Topology:
    return Topology({}, {"window": StatefulQuery("window", ("window",), ("orders",), ())}, (), tables, ())


def test_columns_that_parquet_cannot_store_are_reported() -> None:
    nested = ArrayType(MapType(StringType(), schema(inner=StructType())))
    with pytest.raises(PipelineError, match=r"the column a\.element\.value\.inner.*record without fields"):
        check_types("sink lake", schema(a=nested), "remove it")
    with pytest.raises(PipelineError, match=r"the column b\.key.*calendar interval"):
        check_types("sink lake", schema(a="long", b=MapType(CalendarIntervalType(), StringType())), "remove it")
    with pytest.raises(PipelineError, match="the rows have no columns"):
        check_types("sink lake", schema(), "remove it")
    check_types("sink lake", schema(a=schema(b="long")), "remove it")


def test_names_that_differ_only_in_case_cannot_be_stored() -> None:
    schemas = {"orders": schema(a="long"), "people": schema(x=schema(id="long", ID="string"))}
    check_stored_steps(topology("people"), schemas, is_case_sensitive=True)
    with pytest.raises(PipelineError, match="source people, a table: the columns id and ID of x differ only in case"):
        check_stored_steps(topology("people"), schemas, is_case_sensitive=False)
    check_stored_steps(topology(), schemas, is_case_sensitive=False)
    schemas["orders"] = schema(a="long", A="long")
    with pytest.raises(PipelineError, match="staged as files for window: the columns a and A differ"):
        check_stored_steps(topology(), schemas, is_case_sensitive=False)
