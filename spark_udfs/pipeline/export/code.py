"""Python source of datasets and transforms in a declarative pipeline. Every value of the file is a literal."""

from collections.abc import Iterable

from headgate.spark_udfs.driver.laziness import quoted
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import (
    JoinTransform,
    SqlTransform,
    Transform,
    Watermark,
    WindowKind,
    WindowTransform,
)
from headgate.spark_udfs.pipeline.transforms import SPARK_JOINS


def dataset(kind: str, name: str, body: str, arguments: str = "") -> str:
    """A decorated function. `body` is indented."""
    call = f"({arguments})" if arguments else ""
    return f"@dp.{kind}{call}\ndef {name}() -> DataFrame:\n{body}\n"


def view(name: str, body: str) -> str:
    return dataset("temporary_view", name, body)


def rows_of(step: str, graph: Graph, mark: Watermark | None = None) -> str:
    """The rows of a step, with its watermark, or with another one."""
    mark = mark or watermark(step, graph)
    if mark is not None:
        return f"spark.sql({_stream_sql(step, mark)!r})"
    return f'spark.{"readStream" if graph.is_stream(step) else "read"}.table("{step}_rows")'


def _stream_sql(step: str, mark: Watermark | None) -> str:
    # `DataFrame.withWatermark` analyzes the rows, which is not possible before the pipeline runs.
    clause = f" WATERMARK {quoted(mark.column)} DELAY OF INTERVAL {mark.delay}" if mark else ""
    return f"SELECT * FROM STREAM {step}_rows{clause}"


def watermark(name: str, graph: Graph) -> Watermark | None:
    """The watermark of a source or a SQL transform."""
    step = graph.pipeline.steps[name]
    if isinstance(step, (WindowTransform, JoinTransform)) or not graph.is_stream(name):
        return None
    return step.watermark


def listed(names: Iterable[str]) -> str:
    """Arguments of a call."""
    return f"({', '.join(repr(name) for name in names)})"


def transform_code(transform: Transform, graph: Graph) -> str:
    name = f"{transform.name}_rows"
    if isinstance(transform, SqlTransform):
        return view(name, _sql(transform, graph))
    return view(name, _window(transform, graph) if isinstance(transform, WindowTransform) else _join(transform, graph))


def _sql(transform: SqlTransform, graph: Graph) -> str:
    # The names of the file are common table expressions, so that the SQL stays as it is.
    inputs = (
        f"{each} AS ({_stream_sql(each, watermark(each, graph)) if graph.is_stream(each) else f'TABLE {each}_rows'})"
        for each in transform.inputs
    )
    sql = f"WITH {', '.join(inputs)}\nSELECT * FROM (\n{transform.sql}\n)"
    return f"    return spark.sql({sql!r})"


def _window(transform: WindowTransform, graph: Graph) -> str:
    is_marked = transform.watermark is not None and graph.is_stream(transform.input)
    mark = Watermark(transform.time, transform.watermark or "") if is_marked else None
    if transform.kind is WindowKind.SESSION:
        bounds = f"f.session_window({transform.time!r}, {transform.size!r})"
    else:
        bounds = f"f.window({transform.time!r}, {transform.size!r}, {transform.slide!r})"
    by = "".join(f", f.expr({each!r})" for each in transform.group_by)
    aggregates = ", ".join(f"f.expr({text!r}).alias({name!r})" for name, text in transform.aggregates.items())
    columns = 'f.col("bounds.start").alias("window_start"), f.col("bounds.end").alias("window_end")'
    return (
        f"    rows = {rows_of(transform.input, graph, mark)}\n"
        f'    found = rows.groupBy({bounds}.alias("bounds"){by}).agg({aggregates})\n'
        f'    return found.select({columns}, f.expr("* EXCEPT (bounds)"))'
    )


def _join(transform: JoinTransform, graph: Graph) -> str:
    how = SPARK_JOINS.get(transform.how, transform.how)
    selected = ", ".join(f"f.expr({each!r})" for each in transform.select)
    return (
        f"    left = {rows_of(transform.left, graph)}.alias({transform.left!r})\n"
        f"    right = {rows_of(transform.right, graph)}.alias({transform.right!r})\n"
        f"    return left.join(right, f.expr({transform.on!r}), {how!r}).select({selected})"
    )
