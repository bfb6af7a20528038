"""NaN, infinities and negative zero are values, not nulls, in every PySpark version.

pandas treats NaN as null, and some versions of PySpark convert results through pandas.
"""

from typing import TYPE_CHECKING, Any

import pytest

from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.forms import FORMS
from tests.spark.functions.payloads import encoded, frame_of, register, rows_of
from tests.unit.spark_udfs.plans import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


@pytest.mark.parametrize("decode", FORMS)
def test_special_floats_are_exact(spark: "SparkSession", registry: HeadgateRegistry, decode: Any) -> None:
    (schema_id,) = register(registry, SUBJECT, SCHEMA)
    payloads = [encoded(SCHEMA, value, schema_id) for value in VALUES]
    # Spark 4.0 converts the results of Arrow table functions through pandas.
    spark.conf.set("spark.sql.execution.pythonUDTF.arrow.enabled", "true")
    try:
        rows = rows_of(decode(frame_of(spark, payloads), SUBJECT, registry=registry.url))
    finally:
        spark.conf.unset("spark.sql.execution.pythonUDTF.arrow.enabled")
    assert [row.reason for row in rows] == [None] * len(VALUES)
    # The representation distinguishes NaN from null and -0.0 from 0.0.
    assert [repr(row.value.asDict(recursive=True)) for row in rows] == [repr(as_spark(value)) for value in VALUES]
