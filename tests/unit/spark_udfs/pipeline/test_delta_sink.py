"""The Delta sink, with a session that records the statements."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.model import Mode
from headgate.spark_udfs.pipeline.sinks.delta import ATTEMPTS_MAX, CATALOG, EXTENSION, DeltaSink, DeltaWriter
from headgate.spark_udfs.pipeline.sinks.writer import Written
from tests.unit.spark_udfs.fake_spark import FakeSession, schema

pytestmark = pytest.mark.usefixtures("columns_without_session")

BATCH = BatchId("shop", "identity", "orders", 12)
ROWS = schema(id="long", name="string")
APPEND = "df.write.format(delta).mode(append).option(txnAppId, identity/orders/lake).option(txnVersion, 12)"


class DeltaSession(FakeSession):
    """A session with Delta. `transactions` are the last batches by writer."""

    def __init__(self, *answers: tuple[str, Any], is_delta: bool = True, extension: str = EXTENSION) -> None:
        super().__init__(*answers, spark__sql__extensions=extension)
        self.transactions: dict[str, int] = {}
        self.log_error: Exception | None = None
        self.paths: list[str] = []
        delta = SimpleNamespace(DeltaLog=SimpleNamespace(forTable=self._log))
        spark = SimpleNamespace(sql=SimpleNamespace(delta=delta))
        tables = SimpleNamespace(DeltaTable=SimpleNamespace(isDeltaTable=lambda session, path: is_delta))
        jvm = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(spark=spark)),
            io=SimpleNamespace(delta=SimpleNamespace(tables=tables)),
        )
        self.sparkContext = SimpleNamespace(_jvm=jvm)
        self._jsparkSession = None

    def _log(self, session: Any, path: str) -> Any:
        if self.log_error is not None:
            raise self.log_error
        self.paths.append(path)

        def get(application: str) -> Any:
            found = self.transactions.get(application)
            return SimpleNamespace(isDefined=lambda: found is not None, get=lambda: found)

        snapshot = SimpleNamespace(transactions=lambda: SimpleNamespace(get=get))
        return SimpleNamespace(unsafeVolatileSnapshot=lambda: snapshot)


def writer(session: Any, path: str | None = "/lake", **options: Any) -> DeltaWriter:
    return DeltaWriter(DeltaSink("lake", "orders", path, **options), session)


def write(session: Any, path: str | None = "/lake", **options: Any) -> Written:
    return writer(session, path, **options).write(session.frame(ROWS), BATCH)


def test_a_batch_is_appended_with_its_transaction() -> None:
    session = DeltaSession((".count()", 3))
    assert write(session) == Written(3)
    assert session.actions == ["df.count()", f"{APPEND}.options().save(/lake)"]


def test_options_partitions_and_evolution_are_passed_to_delta() -> None:
    session = DeltaSession((".count()", 3))
    write(session, partition_by=("id",), evolve=True, options={"a": "b"})
    assert session.actions[1] == f"{APPEND}.partitionBy(id).option(mergeSchema, true).options(a=b).save(/lake)"


def test_a_table_with_a_name_is_saved_by_name() -> None:
    session = DeltaSession((".count()", 3))
    session.answers.append(("DESCRIBE DETAIL", None))
    session.answers.insert(0, ("select(location).collect()", [SimpleNamespace(location="/warehouse/t")]))
    assert write(session, None, table=("s", "t")) == Written(3)
    assert session.actions[0] == "sql(DESCRIBE DETAIL `s`.`t`)"
    assert session.paths == ["/warehouse/t"]
    assert session.actions[-1].endswith(".options().saveAsTable(`s`.`t`)")


@pytest.mark.parametrize(("last", "is_repeated"), [(11, False), (12, True), (13, True)])
def test_a_known_batch_is_not_written_again(last: int, is_repeated: bool) -> None:
    session = DeltaSession((".count()", 3))
    session.transactions["identity/orders/lake"] = last
    assert write(session) == (Written(0, repeated=True) if is_repeated else Written(3))
    assert bool(session.actions) is not is_repeated


def test_the_log_of_delta_is_optional_but_its_errors_are_not() -> None:
    session = DeltaSession((".count()", 3))
    missing: Any = Py4JError
    session.log_error = missing("no such method")
    assert write(session) == Written(3)
    session.log_error = TypeError("'JavaPackage' object is not callable")
    assert write(session) == Written(3)

    class JavaError(Py4JJavaError):
        def __init__(self) -> None:
            pass

    session.log_error = JavaError()
    with pytest.raises(Py4JJavaError):
        write(session)


def test_an_empty_batch_is_written_only_if_it_replaces_the_table() -> None:
    session = DeltaSession((".count()", 0))
    assert write(session) == Written(0)
    assert session.actions == ["df.count()"]
    assert write(session, mode=Mode.REPLACE) == Written(0)
    assert ".mode(overwrite)" in session.actions[-1]


def test_an_upsert_merges_the_last_row_of_each_key() -> None:
    session = DeltaSession((".count()", 2))
    merged: list[dict[str, str]] = []
    session.answers.append(("MERGE", lambda: merged.append(dict(session.settings))))
    assert write(session, mode=Mode.UPSERT, keys=("id",)) == Written(2)
    assert session.actions == [
        "persist",
        "df.select(struct(`id`) AS keys, struct(`id`, `name`) AS row, monotonically_increasing_id() AS position)"
        ".groupBy(keys).agg(max_by(row, position) AS row).select(row.*).count()",
        "view(headgate_changes)",
        "sql(MERGE INTO `delta`.`/lake` t USING headgate_changes s ON t.`id` <=> s.`id` "
        "WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`name` = s.`name` "
        "WHEN NOT MATCHED THEN INSERT (`id`, `name`) VALUES (s.`id`, s.`name`))",
        "dropTempView(headgate_changes)",
        "unpersist",
    ]
    prefix = "spark.databricks.delta.write.txn"
    assert merged[0][f"{prefix}AppId"] == "identity/orders/lake"
    assert merged[0][f"{prefix}Version"] == "12"
    assert not any(name.startswith(prefix) for name in session.settings)


def test_an_upsert_of_nothing_writes_nothing() -> None:
    session = DeltaSession((".count()", 0))
    assert write(session, mode=Mode.UPSERT, keys=("id",)) == Written(0)
    assert session.actions[-1] == "unpersist"
    assert not any("MERGE" in action for action in session.actions)


def test_a_failed_merge_leaves_no_settings() -> None:
    session = DeltaSession((".count()", 1), ("MERGE WITH SCHEMA EVOLUTION INTO", RuntimeError("full")))
    with pytest.raises(RuntimeError, match="full"):
        write(session, mode=Mode.UPSERT, keys=("id", "name"), evolve=True)
    assert list(session.settings) == ["spark.sql.extensions"]
    assert session.actions[-2:] == ["dropTempView(headgate_changes)", "unpersist"]
    assert "ON t.`id` <=> s.`id` AND t.`name` <=> s.`name` WHEN" in session.actions[3]


@pytest.mark.parametrize("kind", ["CONCURRENT_APPEND", "METADATA_CHANGED", "PROTOCOL_CHANGED"])
def test_conflicts_are_retried(kind: str) -> None:
    failures = [RuntimeError(f"[DELTA_{kind}] retry")] * (ATTEMPTS_MAX - 1)

    def save() -> None:
        if failures:
            raise failures.pop()

    session = DeltaSession((".count()", 3), (".save(", save))
    assert write(session) == Written(3)
    assert len(session.actions) == 1 + ATTEMPTS_MAX
    always = DeltaSession((".count()", 3), (".save(", RuntimeError(f"[DELTA_{kind}] retry")))
    with pytest.raises(RuntimeError, match="retry"):
        write(always)
    assert len(always.actions) == 1 + ATTEMPTS_MAX
    other = DeltaSession((".count()", 3), (".save(", RuntimeError("[DELTA_OTHER]")))
    with pytest.raises(RuntimeError, match="OTHER"):
        write(other)
    assert len(other.actions) == 2


def test_a_check_writes_an_empty_frame_and_reads_the_table() -> None:
    session = DeltaSession(is_delta=False)
    writer(session).check(ROWS)
    assert session.actions == [
        "createDataFrame([]).write.format(delta).mode(append).options().save(/lake)",
        "read.table(`delta`.`/lake`)",
        "read.table(`delta`.`/lake`).limit(1).collect()",
    ]
    # A replacement may change every column, and an empty one would delete all rows.
    existing = DeltaSession(("read.table(", schema(other="long")))
    writer(existing, mode=Mode.REPLACE).check(ROWS)
    assert not any(".write." in action for action in existing.actions)
    missing = DeltaSession(("tableExists", False))
    writer(missing, None, table=("t",), mode=Mode.REPLACE).check(ROWS)
    assert any(".write." in action for action in missing.actions)


@pytest.mark.parametrize("options", [{"keys": ("nobody",)}, {"partition_by": ("nobody",)}])
def test_a_check_finds_missing_columns(options: Any) -> None:
    with pytest.raises(PipelineError, match=r"sink lake: there is no column nobody\. the rows have id, name"):
        writer(DeltaSession(), **options).check(ROWS)


def test_a_session_without_delta_is_reported() -> None:
    with pytest.raises(PipelineError, match="has no Delta Lake") as caught:
        writer(DeltaSession(extension="other")).check(ROWS)
    assert f"its jars for Spark 4.2.1 (spark.jars or spark.jars.packages), spark.sql.extensions={EXTENSION}" in (
        caught.value.advice
    )


def test_columns_evolve_only_if_allowed() -> None:
    existing = ("read.table(", schema(id="integer"))
    with pytest.raises(PipelineError, match="has a narrower column") as caught:
        writer(DeltaSession(existing)).check(schema(id="long"))
    assert "set evolve = true" in caught.value.advice
    with pytest.raises(PipelineError, match=r"the table /lake has no column name\. it has id"):
        writer(DeltaSession(existing)).check(schema(id="integer", name="string"))
    with pytest.raises(PipelineError, match="cannot store these rows"):
        writer(DeltaSession(existing), evolve=True).check(schema(id="string"))
    session = DeltaSession(existing)
    writer(session, evolve=True).check(schema(id="long", name="string"))
    altered = [action for action in session.actions if "ALTER" in action]
    assert altered == ["sql(ALTER TABLE `delta`.`/lake` ALTER COLUMN `id` TYPE bigint)"]
    unsupported = ("ALTER TABLE", RuntimeError("[DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP]"))
    with pytest.raises(PipelineError, match="Delta does not widen columns") as caught:
        writer(DeltaSession(existing, unsupported), evolve=True).check(schema(id="long"))
    assert "delta.enableTypeWidening" in caught.value.advice
    with pytest.raises(PipelineError, match=r"rejects these rows\. full"):
        writer(DeltaSession(existing, ("ALTER TABLE", RuntimeError("full"))), evolve=True).check(schema(id="long"))


def test_the_cause_of_an_unusable_table_is_reported() -> None:
    with pytest.raises(PipelineError, match=r"the Delta table /lake rejects these rows\. no permission"):
        writer(DeltaSession((".save(", OSError("\n no permission \nstack")), is_delta=False)).check(ROWS)
    with pytest.raises(PipelineError, match="does not work with Spark") as caught:
        writer(DeltaSession((".save(", RuntimeError("java.lang.NoSuchMethodError: x")), is_delta=False)).check(ROWS)
    assert "add its jars" in caught.value.advice
    java = RuntimeError("An error occurred while calling o1.save")
    java.java_exception = SimpleNamespace(toString=lambda: "DeltaError: bad")  # type: ignore[attr-defined]
    with pytest.raises(PipelineError, match=r"rejects these rows\. DeltaError: bad"):
        writer(DeltaSession((".save(", java), is_delta=False)).check(ROWS)
    with pytest.raises(PipelineError, match=r"rejects these rows\. RuntimeError"):
        writer(DeltaSession((".save(", RuntimeError(" ")), is_delta=False)).check(ROWS)


def test_session_settings_need_jars_and_respect_the_file() -> None:
    sink = DeltaSink("lake", "orders", "/lake")
    assert sink.session_settings({}) == {}
    for name in ("spark.jars", "spark.jars.packages"):
        found = sink.session_settings({name: "io.delta:delta-spark"})
        assert found["spark.sql.extensions"] == EXTENSION
        assert found["spark.sql.catalog.spark_catalog"] == CATALOG
        assert sink.session_settings({name: "io.delta:delta-spark", "spark.sql.extensions": "x"}) == {}
    assert sink.session_settings({"spark.jars": "other.jar"}) == {}


def test_a_delta_sink_is_read_from_the_file() -> None:
    def sink(text: str) -> Any:
        head = 'checkpoint = "s"\non_poison = "DROP"\n[sources.a]\ntype = "topic"\n'
        whole = f'{head}[sinks.c]\ntype = "delta"\nfrom = "a"\n{text}'
        return check(parse_toml(whole, "p.toml", Path("/pipelines"), {}), {}).sinks["c"]

    found = sink('path = "lake"\n')
    assert (found.path, found.table, found.mode, found.evolve) == ("/pipelines/lake", (), Mode.APPEND, False)
    assert (found.location, found.folder) == ("/pipelines/lake", "/pipelines/lake")
    named = sink('table = "s.t"\nmode = "upsert"\nkeys = ["id"]\nevolve = true\n')
    assert (named.path, named.table, named.mode, named.evolve) == (None, ("s", "t"), Mode.UPSERT, True)
    assert (named.location, named.sql_name) == ("s.t", "`s`.`t`")
    assert named.describe() == ("Delta s.t, upsert by id", "exactly once")
    assert type(named).can_share_folder
    with pytest.raises(PipelineMistakes, match="path and table are mutually exclusive"):
        sink('table = "s.t"\npath = "lake"\n')
