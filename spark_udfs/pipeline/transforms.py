"""SQL, windows and joins on DataFrames: streams, micro-batches or tables."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import (
    JoinTransform,
    SqlTransform,
    Transform,
    Watermark,
    WindowKind,
    WindowTransform,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from headgate.spark_udfs.pipeline.sources.source import Source

SPARK_JOINS = {
    "semi": "left_semi",
    "anti": "left_anti",
    "full": "full_outer",
    "left": "left_outer",
    "right": "right_outer",
}


def apply_transform(transform: Transform, inputs: "Mapping[str, DataFrame]", spark: "SparkSession") -> "DataFrame":
    """The rows of a transform. The inputs become temporary views of `spark`, their session."""
    if isinstance(transform, SqlTransform):
        for name, frame in inputs.items():
            frame.createOrReplaceTempView(name)
        return with_own_watermark(spark.sql(transform.sql), transform)
    if isinstance(transform, WindowTransform):
        return _windowed(transform, inputs[transform.input])
    return _joined(transform, inputs)


def with_own_watermark(frame: "DataFrame", step: "Source | Transform") -> "DataFrame":
    """The streaming DataFrame with the watermark of its source or SQL transform."""
    mark = None if isinstance(step, (WindowTransform, JoinTransform)) else step.watermark
    return frame if mark is None or not frame.isStreaming else _with_watermark(frame, mark, step.name)


def _with_watermark(frame: "DataFrame", mark: Watermark, step: str) -> "DataFrame":
    if mark.column not in frame.columns:
        raise PipelineError(
            f"{step}: there is no column {mark.column} for the watermark",
            why=f"the rows have {', '.join(frame.columns)}",
        )
    kind = frame.schema[mark.column].dataType.typeName()
    if kind not in {"timestamp", "timestamp_ntz"}:
        raise PipelineError(
            f"{step}: the watermark column {mark.column} is {kind}, and must be a timestamp",
            advice="convert it in a transform: timestamp_millis(…) or to_timestamp(…)",
        )
    return frame.withWatermark(mark.column, mark.delay)


def _windowed(transform: WindowTransform, frame: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    if frame.isStreaming and transform.watermark is not None:
        frame = _with_watermark(frame, Watermark(transform.time, transform.watermark), transform.name)
    if transform.kind is WindowKind.SESSION:
        bounds = f.session_window(f.col(transform.time), transform.size)
    else:
        bounds = f.window(f.col(transform.time), transform.size, transform.slide)
    grouped = frame.groupBy(bounds.alias("bounds"), *(f.expr(each) for each in transform.group_by))
    result = grouped.agg(*(f.expr(text).alias(name) for name, text in transform.aggregates.items()))
    start: Column = f.col("bounds.start").alias("window_start")
    end: Column = f.col("bounds.end").alias("window_end")
    return result.select(start, end, *(f.col(f"`{name}`") for name in result.columns if name != "bounds"))


def _joined(transform: JoinTransform, inputs: "Mapping[str, DataFrame]") -> "DataFrame":
    from pyspark.sql import functions as f

    left = inputs[transform.left].alias(transform.left)
    right = inputs[transform.right].alias(transform.right)
    how = SPARK_JOINS.get(transform.how, transform.how)
    return left.join(right, f.expr(transform.on), how).select(*(f.expr(each) for each in transform.select))
