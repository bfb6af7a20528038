"""Detect columns that Parquet cannot store before the pipeline starts. Spark reports them at the first batch only.

Parquet files store the lookup tables, the staged rows of windows and joins, and the rows of Parquet sinks.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def check_stored_steps(topology: Topology, schemas: "Mapping[str, StructType]", *, is_case_sensitive: bool) -> None:
    """Check the lookup tables and the staged steps. Raises `PipelineError`."""
    stored = [(name, f"source {name}, a table", "remove it from the fields of the source") for name in topology.tables]
    for query in topology.stateful_queries.values():
        advice = f"remove it in a transform before {query.step}"
        stored += [(name, f"{name}, whose rows are staged as files for {query.step}", advice) for name in query.staged]
    for name, step, advice in stored:
        check_types(step, schemas[name], advice)
        if not is_case_sensitive:
            _check_names(step, schemas[name], advice)


def check_types(step: str, schema: "StructType", advice: str) -> None:
    from pyspark.sql.types import CalendarIntervalType, StructType

    if not schema.names:
        raise PipelineError(f"{step}: the rows have no columns, and Parquet needs at least one")
    for path, kind in _inside(schema):
        why = ""
        if isinstance(kind, StructType) and not kind.fields:
            why = "it is a record without fields"
        elif isinstance(kind, CalendarIntervalType):
            why = "it is a calendar interval"
        if why:
            raise PipelineError(f"{step}: Parquet cannot store the column {path}", why=why, advice=advice)


def _check_names(step: str, schema: "StructType", advice: str) -> None:
    """Spark writes names that differ only in case, but cannot read them."""
    from pyspark.sql.types import StructType

    for path, kind in [("", schema), *_inside(schema)]:
        if not isinstance(kind, StructType):
            continue
        before: dict[str, str] = {}
        for name in kind.names:
            other = before.setdefault(name.lower(), name)
            if other != name:
                where = f" of {path}" if path else ""
                raise PipelineError(
                    f"{step}: the columns {other} and {name}{where} differ only in case",
                    why="Spark treats them as one column",
                    advice=f'{advice}, or set sql.caseSensitive = "true" in [spark]',
                )


def _inside(schema: "StructType") -> "Iterator[tuple[str, DataType]]":
    """Every column and nested field with its path, in the order of the columns."""
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
