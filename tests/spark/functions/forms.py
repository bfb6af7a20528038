"""The ways to decode a DataFrame of `n` and `value`. Each returns `n`, `value`, `reason`, `schema_id` and `raw`."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs import decode_frame, from_registry_avro, install, register_function
from tests.conftest import unavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def by_frame(df: "DataFrame", subject: str, **options: Any) -> "DataFrame":
    return decode_frame(df, subject, **options)


def by_column(df: "DataFrame", subject: str, **options: Any) -> "DataFrame":
    return df.select("n", from_registry_avro("value", subject, **options).alias("d")).select("n", "d.*")


def by_sql_function(df: "DataFrame", subject: str, **options: Any) -> "DataFrame":
    register_function(df.sparkSession, "decode_form", subject, **options)
    df.createOrReplaceTempView("payloads_of_form")
    return df.sparkSession.sql("SELECT n, d.* FROM (SELECT n, decode_form(value) AS d FROM payloads_of_form)")


def by_table_function(df: "DataFrame", subject: str, **options: Any) -> "DataFrame":
    if find_spec("pyspark.sql.datasource") is None:
        unavailable("the table function needs PySpark 4.0")
    install(df.sparkSession, **options)
    df.createOrReplaceTempView("payloads_of_form")
    return df.sparkSession.sql(
        f"SELECT * FROM headgate_decode(TABLE(SELECT n, value FROM payloads_of_form), '{subject}')"
    )


FORMS: list[Callable[..., "DataFrame"]] = [by_frame, by_column, by_sql_function, by_table_function]
