"""Find out whether the columns of a DataFrame are known, and refer to columns by name."""

from typing import TYPE_CHECKING

from headgate.spark_udfs.compatibility import has_arrow_functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_lazy(df: "DataFrame") -> bool:
    """Whether reading the columns of the DataFrame would trigger analysis: with Spark Connect, from PySpark 4.1 on.

    A classic DataFrame is analyzed when it is created. PySpark 4.0 has no declarative pipelines, and no functions on
    Arrow arrays.
    """
    return type(df).__module__.startswith("pyspark.sql.connect") and has_arrow_functions()


def quoted(name: str) -> str:
    """The column name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"
