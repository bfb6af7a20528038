"""Micro-batches, dead letters and writers of a pipeline."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from headgate.spark_udfs.dead_letter import COLUMNS
from headgate.spark_udfs.pipeline import dead_letters
from headgate.spark_udfs.pipeline.assembly import Writers, _require_distinct
from headgate.spark_udfs.pipeline.batches import BatchProcessor, Target
from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.dead_letters import DeadLetterWriter, table_schema
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.sinks.console import ConsoleSink
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.spec.policy import OnPoison
from tests.unit.spark_udfs.fake_spark import FakeHadoop, FakeSession, from_ddl, schema
from tests.unit.spark_udfs.pipeline.examples import EVENTS, pipeline

pytestmark = pytest.mark.usefixtures("columns_without_session")


DECODED = schema(
    key="binary", value=schema(id="long"), topic="string", partition="integer", offset="long", timestamp="timestamp",
    reason="string", raw="binary",
)  # fmt: skip


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


class Recorder:
    """A writer that records the plans of its batches."""

    def __init__(self, written: Written | Exception | None = None) -> None:
        self.plans: list[tuple[str, int]] = []
        self.written = written or Written(1)

    def check(self, columns: StructType) -> None:
        self.columns = columns

    def write(self, rows: Any, batch: BatchId) -> Written:
        self.plans.append((rows.plan, batch.number))
        if isinstance(self.written, Exception):
            raise self.written
        return self.written


class Processing:
    def __init__(self, *answers: tuple[str, Any], has_letters: bool = True) -> None:
        self.session = FakeSession(*answers)
        self.metrics = Metrics("shop")
        self.letters = Recorder()
        self.sink = Recorder(Written(2, 1))
        letters = DeadLetterWriter(self.letters if has_letters else None, "shop")
        self.processor = BatchProcessor(pipeline(), {}, letters, self.metrics)
        self.metrics.declare(["orders"], ["e"])

    def process(self, policy: OnPoison = OnPoison.DEAD_LETTER, columns: StructType = DECODED, **options: Any) -> None:
        rows: Any = self.session.frame(columns)
        targets = [Target("e", "orders", self.sink)]
        self.processor.process_source(
            "orders", rows, lambda kept: kept.select("value.*"), targets, policy, batch(3), **options
        )


def counts(**reasons: int) -> tuple[str, Any]:
    rows = [{"reason": None if name == "good" else name, "count": count} for name, count in reasons.items()]
    return ("groupBy(reason).count()", rows)


def test_good_rows_and_dead_letters_are_written_from_one_read() -> None:
    processing = Processing(counts(good=3, CORRUPT=1, TRUNCATED=2))
    processing.process()
    assert processing.sink.plans == [("df.select(value.*)", 3)]
    ((letters, number),) = processing.letters.plans
    assert letters.startswith("df.where(reason IS NOT NULL).select(")
    assert letters.endswith("orders AS source, shop AS pipeline, " + letters.rpartition("pipeline, ")[2])
    assert number == 3
    assert processing.session.actions[0] == "persist"
    assert processing.session.actions[-1] == "unpersist"


def test_poison_is_dropped_or_fails_the_batch() -> None:
    dropped = Processing(counts(CORRUPT=1))
    dropped.process(OnPoison.DROP)
    assert (dropped.sink.plans, dropped.letters.plans) == ([], [])
    rows = [("CORRUPT", "t", 0, 7, "00FF"), ("TRUNCATED", "t", 0, 8, None)]
    failed = Processing(counts(good=1, CORRUPT=1, TRUNCATED=2), ("limit(3).collect()", rows))
    with pytest.raises(
        PipelineError, match="orders: 3 rows of a batch cannot be read, and on_poison is FAIL"
    ) as caught:
        failed.process(OnPoison.FAIL)
    assert caught.value.why == "CORRUPT: t 0 7 bytes 00FF; TRUNCATED: t 0 8 bytes none"
    assert failed.session.actions[-2:] == [
        "df.where(reason IS NOT NULL).select(reason, topic, partition, offset, hex(substring(raw, 1, 16)))"
        ".limit(3).collect()",
        "unpersist",
    ]
    assert failed.sink.plans == []
    good = Processing(counts(good=1))
    good.process(OnPoison.FAIL)
    assert len(good.sink.plans) == 1


def test_rows_without_a_position_are_quoted_without_it() -> None:
    failed = Processing(counts(CORRUPT=1), ("collect()", [("CORRUPT", "00")]))
    with pytest.raises(PipelineError) as caught:
        failed.process(OnPoison.FAIL, schema(value="string", reason="string", raw="binary"))
    assert caught.value.why == "CORRUPT: bytes 00"


def test_rows_of_a_table_are_written_without_tombstones() -> None:
    processing = Processing(counts(good=2))
    table = Recorder()
    processing.process(table=table)
    tombstone = "and(==(reason, NULL), isNotNull(key))"
    decoded = f"df.withColumn(reason, CASE WHEN not({tombstone}) THEN reason END)"
    assert table.plans == [(f"{decoded}.where(reason IS NULL)", 3)]
    assert processing.sink.plans == []
    nothing = Processing(counts(CORRUPT=2))
    nothing.process(OnPoison.DROP, table=table)
    assert len(table.plans) == 1


@pytest.mark.parametrize("count", [0, 4])
def test_rows_that_are_not_decoded_are_counted_and_written(count: int) -> None:
    processing = Processing((".count()", count))
    processing.process(columns=schema(value="binary"))
    assert processing.sink.plans == ([("df.select(value.*)", 3)] if count else [])
    assert processing.session.actions == ["persist", "df.count()", "unpersist"]


def test_a_failed_sink_is_named_and_the_batch_is_released() -> None:
    processing = Processing(counts(good=1))
    processing.sink.written = OSError("full")
    with pytest.raises(PipelineError, match=r"sink e: Spark failed\. full"):
        processing.process()
    assert processing.session.actions[-1] == "unpersist"
    stage = Target("s/orders", "orders", processing.sink, counts=False)
    with pytest.raises(PipelineError, match=r"stage s/orders: Spark failed\. full"):
        processing.processor.write_targets("orders", processing.session.frame(DECODED), [stage], batch(1))  # type: ignore[arg-type]


def test_frames_of_transforms_and_tables_are_computed_once() -> None:
    session: Any = FakeSession(("sql(", schema(id="long")))
    read: list[Any] = []

    def table(spark: Any) -> Any:
        read.append(spark)
        return session.frame(EVENTS, "people")

    tables: Any = {"people": SimpleNamespace(frame=table)}
    processor = BatchProcessor(pipeline(), tables, DeadLetterWriter(None, "shop"), Metrics("shop"))
    first, second = Recorder(), Recorder()
    targets = [Target("c", "named", first), Target("d", "named", second), Target("e", "orders", second)]
    processor.write_targets("orders", session.frame(EVENTS, "rows"), targets, batch(1))
    assert first.plans == [("sql(SELECT * FROM orders JOIN people)", 1)]
    assert second.plans == [("sql(SELECT * FROM orders JOIN people)", 1), ("rows", 1)]
    assert len(read) == 1
    assert [action for action in session.actions if action.startswith("sql(")] == [
        "sql(SELECT * FROM orders JOIN people)"
    ]


def test_dead_letters_need_a_sink() -> None:
    processing = Processing(counts(CORRUPT=1), has_letters=False)
    with pytest.raises(PipelineError, match="orders has rows that cannot be read, and the pipeline has no"):
        processing.process()


SINK = ConsoleSink("out", "orders")


def test_refused_rows_become_dead_letters_with_their_own_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "time", SimpleNamespace(time_ns=lambda: 1_700_000_000_123_456_789))
    writer, session = Recorder(), FakeSession()
    names: list[str] = []
    original = writer.write

    def write(rows: Any, batch_: BatchId) -> Written:
        names.append(batch_.name)
        return original(rows, batch_)

    monkeypatch.setattr(writer, "write", write)
    letters = DeadLetterWriter(writer, "shop")
    sink: Any = SimpleNamespace(name="out", on_refused=OnPoison.DEAD_LETTER)
    letters.refuse(session, sink, [("{}", "too long")], batch(4))  # type: ignore[arg-type]
    ((plan, number),) = writer.plans
    assert plan.startswith("createDataFrame([(b'{}', 'too long')]).select(CAST(NULL AS STRING) AS topic, ")
    assert (
        "CAST(raw AS BINARY) AS raw, CAST(INVALID_VALUE AS STRING) AS reason, CAST(detail AS STRING) AS detail" in plan
    )
    assert "sink out AS source, shop AS pipeline, timestamp_millis(1700000000123) AS failed_at" in plan
    assert number == 4
    assert names == ["identity-orders-out-00000004"]


def test_refused_rows_are_dropped_or_fail_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "REFUSED_ROWS_MAX", 5)
    writer = Recorder()
    letters = DeadLetterWriter(writer, "shop")
    spark: Any = FakeSession()

    def refuse(policy: OnPoison | None, count: int) -> None:
        sink: Any = SimpleNamespace(name="out", on_refused=policy)
        letters.refuse(spark, sink, [("x" * 300, f"bad {at}") for at in range(count)], batch(4))

    refuse(OnPoison.DROP, 5)
    assert writer.plans == []
    refuse(OnPoison.DEAD_LETTER, 5)
    assert len(writer.plans) == 1
    for policy, count in ((OnPoison.FAIL, 1), (None, 1), (OnPoison.DROP, 6), (OnPoison.DEAD_LETTER, 6)):
        with pytest.raises(PipelineError, match=f"sink out cannot write {count} rows of a batch") as caught:
            refuse(policy, count)
        assert caught.value.why.count("bad") == min(count, 3)
        assert "x" * 200 in caught.value.why
        assert "x" * 201 not in caught.value.why


def test_the_dead_letter_table_has_three_more_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StructType, "fromDDL", from_ddl)
    assert table_schema().names == [*COLUMNS, "source", "pipeline", "failed_at"]
    writer = Recorder()
    DeadLetterWriter(writer, "shop").check()
    assert writer.columns == table_schema()
    DeadLetterWriter(None, "shop").check()


def test_column_names_must_differ_in_more_than_case() -> None:
    _require_distinct(["a", "b"])
    with pytest.raises(PipelineError, match="there are two columns A"):
        _require_distinct(["a", "A", "b"])


def test_writers_are_checked_with_the_columns_of_their_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop: Any = FakeHadoop()
    session: Any = FakeSession()
    checkpoint = Checkpoint(Files(hadoop), str(tmp_path), "shop", "identity")
    found = Writers(session, pipeline(), checkpoint)
    recorders = {name: Recorder() for name in found.sinks}
    monkeypatch.setattr(found, "sinks", recorders)
    schemas = {"named": schema(a="long", A="long"), "both": schema(b="long"), "orders": schema(c="long")}
    # The console can show columns with equal names.
    found.check(schemas)
    assert {name: each.columns for name, each in recorders.items()} == {
        "c": schemas["named"],
        "d": schemas["both"],
        "e": schemas["orders"],
    }
    stage = found.stage("window", "orders")
    assert stage._sink.path == f"{tmp_path}/staged/window/orders"
