"""Spark's analysis of a pipeline before it runs: the columns of every step, and which steps are stateful.

It uses placeholder DataFrames with the right columns, so it contacts no broker and reads no file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Pipeline, Transform
from headgate.spark_udfs.pipeline.transforms import apply_transform, with_own_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_STATEFUL = frozenset({"Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark"})
_UNSUPPORTED = {
    "Sort": "ORDER BY",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Tail": "LIMIT",
    "Offset": "OFFSET",
    "Window": "OVER (…)",
}


@dataclass(frozen=True, slots=True)
class Analysis:
    schemas: "Mapping[str, StructType]"
    """The columns of every source and transform."""
    stateful: frozenset[str]


def analyze(spark: "SparkSession", pipeline: Pipeline, sources: "Mapping[str, StructType]") -> Analysis:
    """`sources` are the columns of the good rows of each source. Raises `PipelineError`."""
    graph = Graph(pipeline)
    schemas = dict(sources)
    stateful: set[str] = set()
    for transform in graph.ordered():
        inputs = {}
        for name in transform.inputs:
            placeholder = _placeholder(spark, schemas[name], streaming=graph.is_stream(name))
            # With the watermark, so that Spark checks its rules for streams.
            inputs[name] = with_own_watermark(placeholder, pipeline.steps[name])
        frame = checked_transform(transform, inputs, spark)
        schemas[transform.name] = frame.schema
        if graph.is_stream(transform.name) and _is_stateful(transform, frame, graph):
            stateful.add(transform.name)
    return Analysis(schemas, frozenset(stateful))


def checked_transform(transform: Transform, inputs: "Mapping[str, DataFrame]", spark: "SparkSession") -> "DataFrame":
    """The DataFrame of a transform. Raises `PipelineError` with Spark's message and the existing columns."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return apply_transform(transform, inputs, spark)
    except ParseException as error:
        raise PipelineError(f"transform {transform.name}: Spark cannot parse it", why=_first_lines(error)) from error
    except AnalysisException as error:
        columns = "; ".join(f"{name} has {', '.join(frame.columns)}" for name, frame in inputs.items())
        raise PipelineError(f"transform {transform.name}: {_first_lines(error)}", why=columns) from error


def _placeholder(spark: "SparkSession", schema: "StructType", *, streaming: bool) -> "DataFrame":
    from pyspark.sql.functions import lit

    if not streaming:
        return spark.createDataFrame([], schema)
    base = spark.readStream.format("rate").load()
    return base.select(*(lit(None).cast(field.dataType).alias(field.name) for field in schema.fields))


def _is_stateful(transform: Transform, frame: "DataFrame", graph: Graph) -> bool:
    nodes = list(_nodes(frame))
    found = {str(node.getClass().getSimpleName()) for node in nodes}
    _check_table_joins(transform, frame, nodes)
    for operator in sorted(found & set(_UNSUPPORTED)):
        raise PipelineError(
            f"transform {transform.name}: {_UNSUPPORTED[operator]} is not supported on an unbounded stream",
            advice="remove it, or apply it when you read the sink",
        )
    stateful = bool(found & _STATEFUL) or len(graph.stream_inputs(transform.name)) > 1
    if stateful and not graph.watermarks(transform.name):
        raise PipelineError(
            f"transform {transform.name} is stateful and has no watermark, so its state would grow forever",
            advice="add watermark = { column = …, delay = '10 minutes' } to its source, and group by window(column, …)",
        )
    return stateful


def _check_table_joins(transform: Transform, frame: "DataFrame", nodes: list[Any]) -> None:
    """Every micro-batch reads a table again, so the result must not contain rows of the table alone."""
    if not frame.isStreaming:
        raise PipelineError(
            f"transform {transform.name} uses its stream only in a subquery, which would see one batch at a time",
            advice="join the stream with the table, the stream on the left",
        )
    for node in nodes:
        children = _children(node)
        streaming = [bool(child.isStreaming()) for child in children]
        if all(streaming):
            continue
        kind = str(node.getClass().getSimpleName())
        outer = str(node.joinType()) if kind == "Join" else ""
        allowed = (
            {"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}
            if streaming[0]
            else {"Inner", "Cross", "RightOuter"}
        )
        if kind == "Union" or (kind == "Join" and not outer.startswith("ExistenceJoin") and outer not in allowed):
            what = (
                "a union of a stream and a table"
                if kind == "Union"
                else f"a join ({outer}) that keeps all rows of a table"
            )
            raise PipelineError(
                f"transform {transform.name} has {what}, whose rows would repeat in every micro-batch",
                advice="use an inner join, or a left join with the stream on the left",
            )


def _nodes(frame: "DataFrame") -> Iterator[Any]:
    """The streaming nodes of the query plan."""
    # PySpark has no API for plans, so this walks the tree of the JVM.
    internals: Any = frame
    pending = [internals._jdf.queryExecution().analyzed()]
    while pending:
        node = pending.pop()
        if node.isStreaming():
            yield node
            pending += _children(node)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def _first_lines(error: Exception) -> str:
    """Spark's message without the query plan."""
    text = str(error).split("\n\nJVM stacktrace", 1)[0]
    return "\n".join(line for line in text.split(";\n", 1)[0].splitlines() if line.strip()).strip()
