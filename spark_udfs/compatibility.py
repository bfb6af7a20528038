"""Differences between PySpark 3.5 and 4.x, found by their features instead of their version numbers."""

from importlib.util import find_spec

from headgate.spark_udfs.extra import MissingExtra


def has_arrow_functions() -> bool:
    """Whether PySpark supports functions on Arrow arrays: 4.1 and later."""
    from pyspark.sql.pandas import functions

    return hasattr(functions, "arrow_udf")


def need_arrow_functions(name: str, instead: str) -> None:
    """Raises `MissingExtra`."""
    if not has_arrow_functions():
        raise MissingExtra(
            f"{name} needs PySpark 4.1 or later, which supports functions on Arrow arrays; use {instead}"
        )


def need_data_sources(name: str, instead: str) -> None:
    """Raises `MissingExtra` if PySpark has no data sources in Python: before 4.0."""
    if find_spec("pyspark.sql.datasource") is None:
        raise MissingExtra(f"{name} needs PySpark 4.0 or later, which supports data sources in Python; use {instead}")
