"""Read the sections below `[transforms]`: SQL, windows, joins."""

from collections.abc import Callable

from headgate.spark_udfs.pipeline.checks.fields import watermark
from headgate.spark_udfs.pipeline.checks.table_reader import NAME, TableReader, seconds_of
from headgate.spark_udfs.pipeline.errors import shown
from headgate.spark_udfs.pipeline.model import Emit, JoinTransform, SqlTransform, Transform, WindowKind, WindowTransform

KINDS = ("sql", "window", "join")
HOPS_MAX = 2000
"""Windows that contain one row. Spark copies the row for each window, and takes hours to plan many more."""
JOINS = ("inner", "left", "right", "full", "semi", "anti")


def read_transform(table: TableReader, inputs_of: Callable[[str], tuple[str, ...]]) -> Transform | None:
    """`inputs_of` returns the steps of the pipeline that a SQL text reads."""
    kind = table.one_of("type", KINDS, needed="the kind of the transform")
    name = table.name
    found: Transform | None = None
    if kind == "sql":
        found = _sql(table, name, inputs_of)
    elif kind == "window":
        found = _window(table, name)
    elif kind == "join":
        found = _join(table, name)
    if kind is not None:
        table.finish()
    return found


def _sql(table: TableReader, name: str, inputs_of: Callable[[str], tuple[str, ...]]) -> SqlTransform:
    sql = table.required("sql", "a SELECT over sources and transforms")
    first = sql.split(None, 1)[0].lower() if sql.strip() else "select"
    if first not in {"select", "with", "from", "(", "values"} and not first.startswith("("):
        table.wrong("sql", f"expected a SELECT, not {shown(sql)}")
    inputs = table.texts("from") or inputs_of(sql)
    if sql and not inputs:
        table.wrong("sql", "reads no source and no transform of this pipeline")
    return SqlTransform(name, sql.strip().rstrip(";"), inputs, watermark(table))


def _window(table: TableReader, name: str) -> WindowTransform:
    kind = table.choice("window", WindowKind, WindowKind.TUMBLING)
    if not table.has("window"):
        table.wrong("window", f"is required: one of {', '.join(WindowKind)}")
    session = kind is WindowKind.SESSION
    size = table.duration(
        "gap" if session else "size", needed="the gap that ends a session" if session else "the length"
    )
    slide = None
    if kind is WindowKind.HOPPING:
        slide = table.duration("slide", needed="the interval between window starts")
    _check_lengths(table, "gap" if session else "size", size, slide)
    for key, kinds in (
        ("size", "tumbling and hopping windows"),
        ("gap", "session windows"),
        ("slide", "hopping windows"),
    ):
        fits = {"size": not session, "gap": session, "slide": kind is WindowKind.HOPPING}[key]
        if table.has(key) and not fits and table.take(key) is not None:
            table.wrong(key, f"is for {kinds}; this window is {kind}")
    aggregates_table = table.inner("select")
    aggregates = {} if aggregates_table is None else aggregates_table.flat()
    if not aggregates:
        table.wrong("select", 'is required: the aggregates, such as { orders = "count(*)" }')
    for column in aggregates:
        if NAME.fullmatch(column) is None:
            table.wrong(f"select.{column}", "a column name contains letters, digits and underscores")
    emit = table.choice("emit", Emit, Emit.FINAL)
    if session and emit is Emit.CHANGES:
        table.wrong("emit", "session windows are emitted when they are final; Spark does not support updates")
    return WindowTransform(
        name=name,
        input=table.required("from", "the step to aggregate"),
        kind=kind,
        time=table.required("time", "the timestamp column of the rows"),
        size=size or "1 minutes",
        slide=slide,
        watermark=table.duration("watermark"),
        group_by=table.texts("group_by"),
        aggregates=aggregates,
        emit=emit,
    )


def _check_lengths(table: TableReader, key: str, size: str | None, slide: str | None) -> None:
    none = [at for at, given in ((key, size), ("slide", slide)) if given is not None and seconds_of(given) == 0]
    for at in none:
        table.wrong(at, "must be longer than zero")
    if none or size is None or slide is None:
        return
    long, short = seconds_of(size), seconds_of(slide)
    if short > long:
        table.wrong("slide", f"{slide} is longer than the window; rows between two windows would be lost")
    elif short * HOPS_MAX < long:
        table.wrong("slide", f"each row would be in more than {HOPS_MAX:,} windows of {size}; use a longer slide")


def _join(table: TableReader, name: str) -> JoinTransform:
    left = table.required("left", "a source or a transform")
    right = table.required("right", "a source or a transform")
    if left and left == right:
        table.wrong("right", "is the same step as left; use a sql transform for a self join")
    select = table.texts("select")
    if not select:
        table.wrong("select", f'is required: the columns of the result, such as ["{left or "orders"}.*"]')
    return JoinTransform(
        name=name,
        left=left,
        right=right,
        how=table.one_of("how", JOINS) or "inner",
        on=table.required("on", f"the join condition, such as {left or 'orders'}.id = {right or 'payments'}.order_id"),
        select=select,
    )
