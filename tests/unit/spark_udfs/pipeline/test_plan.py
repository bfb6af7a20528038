"""The plan of a pipeline, as text."""

from typing import Any

from headgate.spark_udfs.pipeline.analysis import Analysis
from headgate.spark_udfs.pipeline.assembly import Outline
from headgate.spark_udfs.pipeline.model import JoinTransform, SqlTransform, WindowKind, WindowTransform
from headgate.spark_udfs.pipeline.plan import _describe, plan_of
from headgate.spark_udfs.pipeline.sources.topic import TopicFrames
from headgate.spark_udfs.pipeline.topology import build_topology
from tests.unit.spark_udfs.fake_spark import schema
from tests.unit.spark_udfs.pipeline.examples import TEXT, pipeline


def text_of(found: Any, stateful: set[str]) -> str:
    frames: dict[str, Any] = {}
    for name in found.sources:
        frames[name] = object.__new__(TopicFrames)
        frames[name].decoding = None
    schemas = dict.fromkeys(found.steps, schema(at="timestamp", identifier="long"))
    outline = Outline(frames, Analysis(schemas, frozenset(stateful)), build_topology(found, stateful))
    return plan_of(found, outline).as_text()


def test_a_plan_lists_steps_columns_and_queries() -> None:
    head = 'name = "shop"\ndescription = "All orders"\ncheckpoint = "s"\non_poison = "DROP"\nrefresh = "7s"\n'
    lines = text_of(pipeline(TEXT, head), {"both"}).splitlines()
    assert lines[0].startswith("pipeline shop (")
    assert lines[1] == "  All orders"
    assert "source orders" in lines
    assert "  watermark 1 minutes behind at" in lines
    assert "    at          timestamp" in lines
    assert "    identifier  bigint" in lines
    named = lines.index("transform named ← orders, people")
    assert lines[named + 1] == "  SELECT * FROM orders JOIN people"
    both = lines.index("transform both ← orders, payments")
    assert lines[both + 2] == "  stateful: keeps rows of several micro-batches"
    assert "sink c ← named" in lines
    queries = lines[lines.index("streaming queries") + 1 :]
    assert queries == [
        "  people: the topic into its table, every 7 s",
        "  orders: read and decoded once → sinks c, e; staged orders",
        "  payments: read and decoded once → staged payments",
        "  both: stateful over orders, payments → sinks d",
    ]


def test_unused_steps_and_dead_letters_are_listed() -> None:
    more = '[transforms.idle]\ntype = "sql"\nsql = "SELECT * FROM orders"\n'
    more += '[dead_letters]\ntype = "topic"\ntopic = "dead"\n'
    text = text_of(pipeline(TEXT + more), {"both"})
    assert text.splitlines()[-1] == "unused steps: idle"
    assert "dead letters dead_letters\n  topic dead\n  at least once" in text
    plain = text_of(pipeline(), {"both"})
    assert "unused" not in plain
    assert "dead letters" not in plain


def test_transforms_are_described() -> None:
    window = WindowTransform(
        "w", "a", WindowKind.HOPPING, "at", "5 minutes", "1 minute", "2 minutes", ("id", "k"), {"n": "count(*)"}
    )
    assert _describe(window) == (
        "hopping windows of 5 minutes every 1 minute on at by id, k, watermark 2 minutes, final"
    )
    session = WindowTransform("w", "a", WindowKind.SESSION, "at", "5 minutes", None, None, (), {})
    assert _describe(session) == "session windows with a gap of 5 minutes on at, final"
    assert _describe(JoinTransform("j", "a", "b", "left", "a.x = b.x", ())) == "left join on a.x = b.x"
    assert _describe(SqlTransform("s", "SELECT\n  1", ())) == "SELECT 1"
