"""Columns that no Parquet file can have, told before anything runs: Spark itself says so at the first batch.

Parquet is where a pipeline's own tables and what waits for a window or a join lie, besides sinks of that type.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import ParquetSink, Pipeline
from headgate.spark_udfs.pipeline.topology import Shape

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def check_parquet_columns(
    pipeline: Pipeline, shape: Shape, schemas: "Mapping[str, StructType]", *, is_case_sensitive: bool
) -> None:
    """Raises `PipelineError`."""
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, ParquetSink):
            _check(f"sink {name}", schemas[sink.input], "leave it out in a transform before the sink")
    for name in shape.tables:
        step, advice = f"source {name}, a table", "leave it out of the source's fields"
        _check(step, schemas[name], advice)
        _check_names(step, schemas[name], advice, is_case_sensitive=is_case_sensitive)
    for gathering in shape.gatherings.values():
        for name in gathering.stages:
            step = f"{name}, whose rows wait in files for {gathering.step}"
            advice = f"leave it out in a transform before {gathering.step}"
            _check(step, schemas[name], advice)
            _check_names(step, schemas[name], advice, is_case_sensitive=is_case_sensitive)


def _check(step: str, schema: "StructType", advice: str) -> None:
    from pyspark.sql.types import CalendarIntervalType, StructType

    if not schema.names:
        raise PipelineError(f"{step}: the rows have no columns, and Parquet needs one")
    for path, kind in _inside(schema):
        why = ""
        if isinstance(kind, StructType) and not kind.fields:
            why = "it is a record without fields"
        elif isinstance(kind, CalendarIntervalType):
            why = "it is an interval of months, days and microseconds together"
        if why:
            raise PipelineError(f"{step}: Parquet cannot hold the column {path}", why=why, advice=advice)


def _check_names(step: str, schema: "StructType", advice: str, *, is_case_sensitive: bool) -> None:
    """Spark writes names that differ in case only, and does not read them."""
    from pyspark.sql.types import StructType

    if is_case_sensitive:
        return
    for path, kind in [("", schema), *_inside(schema)]:
        if not isinstance(kind, StructType):
            continue
        before: dict[str, str] = {}
        for name in kind.names:
            other = before.setdefault(name.lower(), name)
            if other != name:
                where = f" of {path}" if path else ""
                raise PipelineError(
                    f"{step}: the columns {other} and {name}{where} differ in case only",
                    why="Spark takes them for one",
                    advice=f'{advice}, or set sql.caseSensitive = "true" under [spark]',
                )


def _inside(schema: "StructType") -> "Iterator[tuple[str, DataType]]":
    """Every column and whatever is in it, by its path, in the order of the columns."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    waiting: list[tuple[str, DataType]] = [(field.name, field.dataType) for field in reversed(schema.fields)]
    while waiting:
        path, kind = waiting.pop()
        yield path, kind
        if isinstance(kind, StructType):
            waiting += [(f"{path}.{field.name}", field.dataType) for field in reversed(kind.fields)]
        elif isinstance(kind, ArrayType):
            waiting.append((f"{path}.element", kind.elementType))
        elif isinstance(kind, MapType):
            waiting += [(f"{path}.value", kind.valueType), (f"{path}.key", kind.keyType)]
