"""Convert Spark columns to database values without loss.

Python dates end in the year 9999, and PySpark converts timestamps to local time. So timestamps and dates leave Spark as
numbers, and nested values as JSON. `time_of` and `date_of` convert the numbers.
"""

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.databases.dialect import Refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NESTED = frozenset({"struct", "array", "map", "variant"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def exact_columns(rows: "DataFrame") -> "DataFrame":
    """The rows, with every column in a type that Python represents exactly."""
    from pyspark.sql import functions as f

    columns = []
    for field in rows.schema.fields:
        column, kind = f.col(f"`{field.name}`"), field.dataType.typeName()
        if kind in NESTED:
            column = f.to_json(column)
        elif kind == "timestamp":
            column = f.unix_micros(column)
        elif kind == "timestamp_ntz":
            # The session time zone is UTC, so the cast does not change the wall-clock time.
            column = f.unix_micros(column.cast("timestamp"))
        elif kind == "date":
            column = f.unix_date(column)
        elif kind not in PLAIN:
            column = column.cast("string")
        columns.append(column.alias(field.name))
    return rows.select(*columns)


PLAIN = frozenset(
    {"string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "varchar", "char"}
)


def time_of(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise Refusal(f"a time {micros} microseconds from 1970 is outside the years 1 to 9999") from None


def date_of(days: int) -> date:
    try:
        return _EPOCH.date() + timedelta(days=days)
    except OverflowError:
        raise Refusal(f"a date {days} days from 1970 is outside the years 1 to 9999") from None
