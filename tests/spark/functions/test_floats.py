"""NaN, infinities and negative zero are values, not nulls, in every PySpark version.

pandas treats NaN as null, and some versions of PySpark convert results through pandas.
"""

from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark_udfs import decode_frame, from_registry_avro, install, register_function
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import encoded, frame_of, register, rows_of
from tests.unit.spark_udfs.plans import record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECT = "floats-value"
SCHEMA: dict[str, Any] = record(
    ("single", "float"),
    ("double", "double"),
    ("maybe", ["null", "double"]),
    ("either", ["null", "string", "double"]),
    ("list", {"type": "array", "items": ["null", "float"]}),
    ("map", {"type": "map", "values": ["null", "double"]}),
    ("nested", {"type": "array", "items": record(("deep", {"type": "map", "values": "double"}), name="Inner")}),
)
NAN, INFINITY = float("nan"), float("inf")
VALUES: list[dict[str, Any]] = [
    {
        "single": value,
        "double": value,
        "maybe": value,
        "either": value,
        "list": [value, None, value],
        "map": {"a": value, "b": None},
        "nested": [{"deep": {"a": value}}, {"deep": {}}],
    }
    for value in (NAN, INFINITY, -INFINITY, -0.0)
] + [
    {"single": 0.5, "double": 0.5, "maybe": None, "either": None, "list": [None], "map": {"a": None}, "nested": []},
]


def as_spark(value: dict[str, Any]) -> dict[str, Any]:
    either = value["either"]
    return {**value, "either": None if either is None else {"member0": None, "member1": either}}


def by_frame(spark: "SparkSession", df: "DataFrame", url: str) -> "DataFrame":
    return decode_frame(df, SUBJECT, registry=url)


def by_column(spark: "SparkSession", df: "DataFrame", url: str) -> "DataFrame":
    return df.select("n", from_registry_avro("value", SUBJECT, registry=url).alias("d")).select("n", "d.*")


def by_sql_function(spark: "SparkSession", df: "DataFrame", url: str) -> "DataFrame":
    register_function(spark, "decode_floats", SUBJECT, registry=url)
    df.createOrReplaceTempView("floats")
    return spark.sql("SELECT n, d.* FROM (SELECT n, decode_floats(value) AS d FROM floats)")


def by_table_function(spark: "SparkSession", df: "DataFrame", url: str) -> "DataFrame":
    spark.conf.set("spark.sql.execution.pythonUDTF.arrow.enabled", "true")
    install(spark, registry=url)
    df.createOrReplaceTempView("floats")
    return spark.sql(f"SELECT * FROM headgate_decode(TABLE(SELECT n, value FROM floats), '{SUBJECT}')")


@pytest.mark.parametrize("decode", [by_frame, by_column, by_sql_function, by_table_function])
def test_special_floats_are_exact(spark: "SparkSession", registry: HeadgateRegistry, decode: Any) -> None:
    (schema_id,) = register(registry, SUBJECT, SCHEMA)
    payloads = [encoded(SCHEMA, value, schema_id) for value in VALUES]
    try:
        rows = rows_of(decode(spark, frame_of(spark, payloads), registry.url))
    finally:
        spark.conf.unset("spark.sql.execution.pythonUDTF.arrow.enabled")
    assert [row.reason for row in rows] == [None] * len(VALUES)
    # The representation distinguishes NaN from null and -0.0 from 0.0.
    assert [repr(row.value.asDict(recursive=True)) for row in rows] == [repr(as_spark(value)) for value in VALUES]
