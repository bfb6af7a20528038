"""Columns that no Parquet file can have, told before anything runs: Spark itself says so at the first row.

Parquet is where a pipeline's own tables and what waits for a window or a join lie, besides sinks of that type.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_udfs.pipeline.mistakes import PipelineError
from spark_udfs.pipeline.model import ParquetSink, Pipeline
from spark_udfs.pipeline.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def check_parquet_columns(pipeline: Pipeline, shape: Shape, schemas: "Mapping[str, StructType]") -> None:
    """Raises `PipelineError`."""
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, ParquetSink):
            _check(f"sink {name}", schemas[sink.input], "leave it out in a transform before the sink")
    for name in shape.tables:
        _check(f"source {name}, a table", schemas[name], "leave it out of the source's fields")
    for gathering in shape.gatherings.values():
        for step in gathering.stages:
            _check(
                f"{step}, whose rows wait in files for {gathering.step}",
                schemas[step],
                f"leave it out in a transform before {gathering.step}",
            )


def _check(step: str, schema: "StructType", advice: str) -> None:
    if not schema.names:
        raise PipelineError(f"{step}: the rows have no columns, and Parquet needs one")
    found = _unfit(schema)
    if found is not None:
        column, why = found
        raise PipelineError(f"{step}: Parquet cannot hold the column {column}", why=why, advice=advice)


def _unfit(schema: "StructType") -> tuple[str, str] | None:
    """The first column that does not fit, by its path, and why."""
    from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, StructType

    waiting: list[tuple[str, DataType]] = [(field.name, field.dataType) for field in reversed(schema.fields)]
    while waiting:
        path, kind = waiting.pop()
        if isinstance(kind, StructType):
            if not kind.fields:
                return path, "it is a record without fields"
            waiting += [(f"{path}.{field.name}", field.dataType) for field in reversed(kind.fields)]
        elif isinstance(kind, ArrayType):
            waiting.append((f"{path}.element", kind.elementType))
        elif isinstance(kind, MapType):
            waiting += [(f"{path}.value", kind.valueType), (f"{path}.key", kind.keyType)]
        elif isinstance(kind, CalendarIntervalType):
            return path, "it is an interval of months, days and microseconds together"
    return None
