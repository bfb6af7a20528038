"""Transforms, and Spark's analysis of a pipeline."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import StructType

from headgate.spark_udfs.pipeline.analysis import analyze
from headgate.spark_udfs.pipeline.assembly import outline
from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import JoinTransform, SqlTransform, Watermark, WindowKind, WindowTransform
from headgate.spark_udfs.pipeline.transforms import apply_transform, with_own_watermark
from tests.unit.spark_udfs.fake_spark import FakeSession, schema
from tests.unit.spark_udfs.pipeline.examples import EVENTS, TEXT, pipeline

pytestmark = pytest.mark.usefixtures("columns_without_session")


DECODED = schema(
    key="binary", value=schema(id="long"), topic="string", partition="integer", offset="long", timestamp="timestamp",
    reason="string", raw="binary",
)  # fmt: skip


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


def frame(columns: StructType, *, streaming: bool = True, name: str = "df") -> Any:
    return FakeSession().frame(columns, name, streaming=streaming)


def window(kind: WindowKind, slide: str | None = None, watermark: str | None = "1 minute") -> WindowTransform:
    return WindowTransform("w", "a", kind, "at", "5 minutes", slide, watermark, ("id",), {"rows": "count(*)"})


def test_windows_group_rows_by_time() -> None:
    spark: Any = None

    def plan(transform: WindowTransform, *, streaming: bool = True) -> str:
        found: Any = apply_transform(transform, {"a": frame(EVENTS, streaming=streaming)}, spark)
        return str(found.plan)

    end = (
        " AS bounds, id).agg(count(*) AS rows).select(bounds.start AS window_start, bounds.end AS window_end, "
        "`id`, `rows`)"
    )
    hopping = window(WindowKind.HOPPING, "1 minute")
    assert plan(hopping) == f"df.withWatermark(at, 1 minute).groupBy(window(at, 5 minutes, 1 minute){end}"
    session = window(WindowKind.SESSION, watermark=None)
    assert plan(session) == f"df.groupBy(session_window(at, 5 minutes){end}"
    assert plan(window(WindowKind.TUMBLING), streaming=False) == f"df.groupBy(window(at, 5 minutes){end}"


@pytest.mark.parametrize(("how", "expected"), [("left", "left_outer"), ("semi", "left_semi"), ("inner", "inner")])
def test_joins_use_the_names_of_their_inputs(how: str, expected: str) -> None:
    spark: Any = None
    transform = JoinTransform("j", "a", "b", how, "a.id = b.id", ("a.*", "b.name"))
    found: Any = apply_transform(transform, {"a": frame(EVENTS, name="x"), "b": frame(EVENTS, name="y")}, spark)
    assert found.plan == f"x.alias(a).join(y.alias(b), a.id = b.id, {expected}).select(a.*, b.name)"


def test_sql_sees_its_inputs_as_views() -> None:
    session: Any = FakeSession(("sql(", schema(at="timestamp")))
    rows: Any = session.frame(EVENTS)
    transform = SqlTransform("s", "SELECT * FROM a", ("a",), Watermark("at", "1 hour"))
    found: Any = apply_transform(transform, {"a": rows}, session)
    assert session.actions == ["view(a)", "sql(SELECT * FROM a)"]
    # The result of a table is no stream, so it has no watermark.
    assert found.plan == "sql(SELECT * FROM a)"


def test_a_watermark_needs_a_timestamp_of_a_stream() -> None:
    def step(column: str) -> Any:
        return SqlTransform("s", "", (), Watermark(column, "1 hour"))

    marked: Any = with_own_watermark(frame(EVENTS), step("at"))
    assert marked.plan == "df.withWatermark(at, 1 hour)"
    local: Any = with_own_watermark(frame(schema(at="timestamp_ntz")), step("at"))
    assert local.plan == "df.withWatermark(at, 1 hour)"
    for unmarked in (
        with_own_watermark(frame(EVENTS, streaming=False), step("at")),
        with_own_watermark(frame(EVENTS), SqlTransform("s", "", ())),
        with_own_watermark(frame(EVENTS), window(WindowKind.TUMBLING)),
    ):
        assert unmarked.plan == "df"
    with pytest.raises(PipelineError, match=r"s: there is no column nobody for the watermark\. the rows have at, id"):
        with_own_watermark(frame(EVENTS), step("nobody"))
    with pytest.raises(PipelineError, match="the watermark column wrong is string, and must be a timestamp"):
        with_own_watermark(frame(EVENTS), step("wrong"))


class Node:
    """A node of Spark's query plan."""

    def __init__(self, kind: str, *children: "Node", streaming: bool = True, join: str = "") -> None:
        self.kind = kind
        self.nodes = children
        self.isStreaming = lambda: streaming
        self.join = join

    def joinType(self) -> str:
        return self.join

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self.kind)

    def children(self) -> Any:
        return SimpleNamespace(apply=lambda at: self.nodes[at], size=lambda: len(self.nodes))


STREAM, TABLE = Node("Relation"), Node("Relation", streaming=False)
INNER = Node("Join", STREAM, TABLE, join="Inner")


class PlanSession(FakeSession):
    """A session whose SQL statements have a query plan."""

    def __init__(self, *plans: tuple[str, Node], streaming: bool = True) -> None:
        super().__init__(("sql(", schema(at="timestamp")))
        self.plans = plans
        self.streaming = streaming

    def sql(self, text: str) -> Any:
        found: Any = super().sql(text)
        found.isStreaming = self.streaming
        node = next((node for name, node in self.plans if name in text), INNER)
        found._jdf = SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: node))
        return found


SOURCES = {name: schema(at="timestamp") for name in ("orders", "payments", "people")}


def analyzed(*plans: tuple[str, Node], streaming: bool = True, text: str = TEXT) -> Any:
    session: Any = PlanSession(*plans, streaming=streaming)
    return analyze(session, pipeline(text), SOURCES)


def test_joins_of_two_streams_are_stateful() -> None:
    found = analyzed()
    assert found.stateful == {"both"}
    assert found.schemas["named"] == schema(at="timestamp")


@pytest.mark.parametrize("kind", ["Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark"])
def test_aggregations_are_stateful_and_need_a_watermark(kind: str) -> None:
    plan = ("people", Node(kind, INNER))
    assert analyzed(plan).stateful == {"named", "both"}
    unmarked = TEXT.replace('watermark = { column = "at", delay = "1 minute" }\n', "")
    with pytest.raises(PipelineError, match="transform named is stateful and has no watermark"):
        analyzed(plan, text=unmarked)


@pytest.mark.parametrize(
    ("kind", "text"), [("Sort", "ORDER BY"), ("GlobalLimit", "LIMIT"), ("Window", r"OVER \(…\)"), ("Offset", "OFFSET")]
)
def test_operators_that_need_all_rows_are_not_supported(kind: str, text: str) -> None:
    with pytest.raises(PipelineError, match=f"transform named: {text} is not supported on an unbounded stream"):
        analyzed(("people", Node("Project", Node(kind, INNER))))
    # Inside a table they are supported.
    sorted_table = Node("Project", Node(kind, TABLE, streaming=False), streaming=False)
    assert analyzed(("people", Node("Join", STREAM, sorted_table, join="Inner"))).stateful == {"both"}


@pytest.mark.parametrize(
    ("join", "is_allowed"),
    [
        (Node("Join", STREAM, TABLE, join="LeftOuter"), True),
        (Node("Join", STREAM, TABLE, join="LeftAnti"), True),
        (Node("Join", STREAM, TABLE, join="ExistenceJoin(exists)"), True),
        (Node("Join", TABLE, STREAM, join="RightOuter"), True),
        (Node("Join", TABLE, STREAM, join="Cross"), True),
        (Node("Join", STREAM, STREAM, join="FullOuter"), True),
        (Node("Subquery", STREAM, TABLE), True),
        (Node("Join", STREAM, TABLE, join="RightOuter"), False),
        (Node("Join", TABLE, STREAM, join="LeftOuter"), False),
        (Node("Join", STREAM, TABLE, join="FullOuter"), False),
    ],
)
def test_a_join_must_not_keep_all_rows_of_a_table(join: Node, is_allowed: bool) -> None:
    if is_allowed:
        analyzed(("people", join))
        return
    with pytest.raises(PipelineError, match=rf"has a join \({join.join}\) that keeps all rows of a table"):
        analyzed(("people", Node("Project", join)))


def test_a_union_with_a_table_and_a_stream_in_a_subquery_are_rejected() -> None:
    analyzed(("people", Node("Union", STREAM, STREAM)))
    with pytest.raises(PipelineError, match="has a union of a stream and a table"):
        analyzed(("people", Node("Union", STREAM, TABLE)))
    with pytest.raises(PipelineError, match="uses its stream only in a subquery"):
        analyzed(streaming=False)


def test_placeholders_are_streams_with_watermarks_or_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = PlanSession()
    seen: dict[str, str] = {}

    def transform(step: Any, inputs: Any, spark: Any) -> Any:
        seen.update({f"{step.name} {name}": each.plan for name, each in inputs.items()})
        return session.sql(step.sql)

    monkeypatch.setattr("headgate.spark_udfs.pipeline.analysis.apply_transform", transform)
    analyze(session, pipeline(), SOURCES)
    stream = "readStream.format(rate).load().select(CAST(NULL AS TIMESTAMP) AS at)"
    assert seen == {
        "named orders": f"{stream}.withWatermark(at, 1 minutes)",
        "named people": "createDataFrame([])",
        "both orders": f"{stream}.withWatermark(at, 1 minutes)",
        "both payments": stream,
    }


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ParseException("syntax error;\nplan"), r"transform named: Spark cannot parse it\. syntax error$"),
        (AnalysisException("no column x\n\nJVM stacktrace"), r"named: no column x\. orders has at; people has at$"),
    ],
)
def test_errors_of_transforms_are_explained(error: Exception, message: str) -> None:
    session: Any = PlanSession()
    session.answers = [("people", error), ("sql(", schema(at="timestamp"))]
    with pytest.raises(PipelineError, match=message):
        analyze(session, pipeline(), SOURCES)


def test_an_outline_needs_storable_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = {name: SimpleNamespace(schema=schema(at="timestamp", a="long", A="long")) for name in SOURCES}
    monkeypatch.setattr(
        "headgate.spark_udfs.pipeline.sources.topic.TopicSource.open", lambda self, context: opened[self.name]
    )
    session: Any = PlanSession()
    session.settings["spark.sql.caseSensitive"] = "true"
    found = outline(session, pipeline(), None)
    assert found.frames == opened
    session.settings["spark.sql.caseSensitive"] = "false"
    with pytest.raises(PipelineError, match="the columns a and A differ only in case"):
        outline(session, pipeline(), None)
