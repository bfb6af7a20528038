"""What Spark's analyser says of a pipeline before anything runs: the columns of every step, and which steps need rows
of more than one micro-batch. Works on stand-ins with the right columns, so that no broker and no file is touched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Pipeline, Transform, WindowTransform
from headgate.spark_udfs.pipeline.transforms import transformed, with_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_GATHERING = frozenset({"Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark"})
_MEANINGLESS = {
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
    """Of every source and transform."""
    stateful: frozenset[str]


def analyse(spark: "SparkSession", pipeline: Pipeline, sources: "Mapping[str, StructType]") -> Analysis:
    """`sources` are the columns of each source's good rows. Raises `PipelineError`."""
    graph = Graph(pipeline)
    schemas = dict(sources)
    stateful: set[str] = set()
    for transform in graph.ordered():
        inputs = {}
        for name in transform.inputs:
            stand_in = _stand_in(spark, schemas[name], streaming=graph.is_stream(name))
            inputs[name] = _marked(pipeline, graph, name, stand_in)
        frame = analysed(transform, inputs, spark)
        schemas[transform.name] = frame.schema
        if graph.is_stream(transform.name) and _gathers(transform, frame, graph):
            stateful.add(transform.name)
    return Analysis(schemas, frozenset(stateful))


def analysed(transform: Transform, inputs: "Mapping[str, DataFrame]", spark: "SparkSession") -> "DataFrame":
    """The transform's frame. Raises `PipelineError` in Spark's words, with the columns that there are."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return transformed(transform, inputs, spark)
    except ParseException as error:
        raise PipelineError(f"transform {transform.name}: Spark cannot read it", why=_first_lines(error)) from error
    except AnalysisException as error:
        columns = "; ".join(f"{name} has {', '.join(frame.columns)}" for name, frame in inputs.items())
        raise PipelineError(f"transform {transform.name}: {_first_lines(error)}", why=columns) from error


def _marked(pipeline: Pipeline, graph: Graph, name: str, frame: "DataFrame") -> "DataFrame":
    """With its watermark, so that Spark's rules about streams are checked as they will be."""
    step = pipeline.steps[name]
    mark = getattr(step, "watermark", None)
    if mark is None or isinstance(step, WindowTransform) or not graph.is_stream(name):
        return frame
    return with_watermark(frame, mark, name)


def _stand_in(spark: "SparkSession", schema: "StructType", *, streaming: bool) -> "DataFrame":
    from pyspark.sql.functions import lit

    if not streaming:
        return spark.createDataFrame([], schema)
    base = spark.readStream.format("rate").load()
    return base.select(*(lit(None).cast(field.dataType).alias(field.name) for field in schema.fields))


def _gathers(transform: Transform, frame: "DataFrame", graph: Graph) -> bool:
    nodes = list(_nodes(frame))
    found = {str(node.getClass().getSimpleName()) for node in nodes}
    _check_mixtures(transform, frame, nodes)
    for operator in sorted(found & set(_MEANINGLESS)):
        raise PipelineError(
            f"transform {transform.name}: {_MEANINGLESS[operator]} has no meaning on rows that never end",
            advice="leave it out, or do it where the sink is read",
        )
    gathers = bool(found & _GATHERING) or len(graph.stream_inputs(transform.name)) > 1
    if gathers and not graph.watermarks(transform.name):
        raise PipelineError(
            f"transform {transform.name} gathers rows over time without a watermark, so they would be kept for ever",
            advice="give its source watermark = { column = …, delay = '10 minutes' } and group by window(column, …)",
        )
    return gathers


def _check_mixtures(transform: Transform, frame: "DataFrame", nodes: list[Any]) -> None:
    """Streams and tables together: a table is there again in every micro-batch, so its rows alone must not come out."""
    if not frame.isStreaming:
        raise PipelineError(
            f"transform {transform.name} has its stream in a subquery only, where it would be read batch by batch",
            advice="join the stream with the table instead, the stream first",
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
                f"transform {transform.name} has {what}, whose rows would come again with every micro-batch",
                advice="keep the rows of the stream: an inner join, or a left join with the stream on the left",
            )


def _nodes(frame: "DataFrame") -> Iterator[Any]:
    """The plan's nodes that stand on a stream."""
    # PySpark has no words for plans; the JVM's tree is walked as it is.
    internals: Any = frame
    waiting = [internals._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        if node.isStreaming():
            yield node
            waiting += _children(node)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def _first_lines(error: Exception) -> str:
    """Spark's message without the plan that follows it."""
    text = str(error).split("\n\nJVM stacktrace", 1)[0]
    return "\n".join(line for line in text.split(";\n", 1)[0].splitlines() if line.strip()).strip()
