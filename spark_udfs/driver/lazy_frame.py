"""Decode DataFrames whose columns are not known yet, without analysis.

Spark Connect analyzes a DataFrame only on request, with a call to the server. Declarative pipelines forbid such calls,
because the tables of a pipeline do not exist while its functions run. The functions of this module therefore build
their plans from column names only. They decode with a column function, which keeps the other columns in the JVM.

A column that may be missing gets a default through a lateral column alias: Spark resolves a name to a column of the
input first, and to an alias of the same SELECT second.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.driver.arrow_udf import arrow_function_of_pairs
from headgate.spark_udfs.driver.laziness import is_lazy, quoted
from headgate.spark_udfs.driver.outcome_schema import outcome_fields, outcome_names, spark_value_type
from headgate.spark_udfs.executor.arrow_functions import DecodePairs
from headgate.spark_udfs.executor.decoding import Decoding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX = "_headgate_"
"""Prefix of the columns of `with_defaults`."""
HEADERS = "headers"
HEADERS_TYPE = "array<struct<key:string,value:binary>>"

_ROW = "_headgate_row"
_OUTCOME = "_headgate_outcome"
_OTHERS = "_headgate_others"
_PAD = "_headgate_pad"


def decode_lazily(
    df: "DataFrame", decoding: Decoding, *, column: str, keep: Sequence[str] | None, details: bool, flat: bool
) -> "DataFrame":
    """Like `spark_udfs.frame.apply_decoding`. Spark reports missing and duplicate columns when it analyzes the plan."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    value = StructField("value", spark_value_type(decoding))
    kind = StructType([value, *outcome_fields(decoding, details=details)])
    decode: Any = arrow_function_of_pairs(DecodePairs(decoding, details), kind)
    rows = with_defaults(df, {HEADERS: f.lit(None).cast(HEADERS_TYPE)})
    # Spark would push a filter on the outcome below a deterministic function, and call the function twice.
    outcome = decode.asNondeterministic()(f"{_ROW}.{quoted(column)}", PREFIX + HEADERS).alias(_OUTCOME)
    kept = [_all_except(column, _OUTCOME)] if keep is None else [f.col(quoted(name)) for name in keep]
    return rows.select(f"{_ROW}.*", outcome).select(
        *kept,
        f"{_OUTCOME}.value{'.*' if flat else ''}",
        *(f"{_OUTCOME}.{name}" for name in outcome_names(decoding, details=details)),
    )


def without(df: "DataFrame", *names: str) -> "DataFrame":
    """The DataFrame without these columns, whether they exist or not. One other column must exist.

    `DataFrame.drop` does the same, but the server of Spark Connect analyzes it immediately.
    """
    from pyspark.sql import functions as f

    return df.select(f.struct("*").dropFields(*names).alias(_OTHERS)).select(f"{_OTHERS}.*")


def with_leading(
    df: "DataFrame",
    defaults: "Mapping[str, Column]",
    kinds: Mapping[str, str],
    sources: Mapping[str, str],
    removed: Sequence[str],
) -> "DataFrame":
    """The columns of `kinds`, cast to these, then all other columns of the DataFrame that are not removed.

    A column gets its default if it does not exist. `sources` are the input columns with another name.
    """
    from pyspark.sql import functions as f

    # A struct needs at least one field.
    others = f.struct(f.lit(True).alias(_PAD), f.col(f"{_ROW}.*")).dropFields(*defaults, *removed)
    rows = with_defaults(df, defaults).select(*(PREFIX + name for name in defaults), others.alias(_OTHERS))
    leading = [f.col(PREFIX + sources.get(name, name)).cast(kind).alias(name) for name, kind in kinds.items()]
    return rows.select(*leading, f"{_OTHERS}.*").select(_all_except(_PAD))


def with_defaults(df: "DataFrame", defaults: "Mapping[str, Column]") -> "DataFrame":
    """The columns of the DataFrame with the qualifier `_headgate_row`, and `_headgate_NAME` for each of the defaults.

    `_headgate_NAME` is the column NAME, or the default if there is no such column.
    """
    from pyspark.sql import functions as f

    return df.alias(_ROW).select(
        f"{_ROW}.*",
        *(default.alias(name) for name, default in defaults.items()),
        *(f.col(name).alias(PREFIX + name) for name in defaults),
    )


def with_field(df: "DataFrame", column: str, name: str) -> "DataFrame":
    """The DataFrame with a struct column replaced by one of its fields. The column is the last one."""
    from pyspark.sql import functions as f

    # PySpark 3.5 has no EXCEPT.
    others = [_all_except(column)] if is_lazy(df) else [f.col(quoted(each)) for each in df.columns if each != column]
    return df.select(*others, f.col(f"{quoted(column)}.{quoted(name)}").alias(column))


def _all_except(*names: str) -> "Column":
    from pyspark.sql import functions as f

    return f.expr(f"* EXCEPT ({', '.join(quoted(name) for name in names)})")
