"""`to_registry_avro` and `encode_frame`: the driver registers the schema, executors encode."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from headgate.serdes import Deserializer, RegistryClient
from headgate.spark_udfs import FrameError, RegistryNotReady, encode_frame, to_registry_avro
from headgate.spark_udfs.executor.encoding import EncodingError
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.conftest import need_arrow_functions
from tests.spark.functions.payloads import rows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
ROWS = """
SELECT * FROM VALUES
  (1, 1, 'NEW', TIMESTAMP'2026-01-01 00:00:00.123999', 1.50BD),
  (2, 5000000000, 'NEW', TIMESTAMP'2026-01-01 00:00:00', 1.50BD),
  (3, 3, 'ODD', TIMESTAMP'2026-01-01 00:00:00', 1.50BD),
  (4, 4, null, TIMESTAMP'2026-01-01 00:00:00', 1.50BD),
  (5, 5, 'OLD', TIMESTAMP'1960-01-01 00:00:00.000999', 12345.50BD),
  (6, 6, 'OLD', TIMESTAMP'1960-01-01 00:00:00.000999', 2BD)
AS t(n, id, kind, at, price)
"""


def by_column(df: "DataFrame", value: "Column", subject: str, **options: Any) -> "DataFrame":
    need_arrow_functions()
    return df.select("n", to_registry_avro(value, subject, **options).alias("p"))


def by_frame(df: "DataFrame", value: "Column", subject: str, **options: Any) -> "DataFrame":
    return encode_frame(df.select("n", value.alias("p")), subject, column="p", **options)


@pytest.mark.parametrize("encode", [by_column, by_frame])
def test_valid_rows_are_encoded_and_the_others_have_reasons(
    spark: "SparkSession", registry: HeadgateRegistry, encode: Callable[..., "DataFrame"]
) -> None:
    from pyspark.sql import functions as f

    df = spark.sql(ROWS).repartition(2)
    value = f.struct("id", "kind", "at", "price")
    options = {"registry": registry.url, "schema": json.dumps(ORDER), "on_poison": "DEAD_LETTER"}
    rows = rows_of(encode(df, value, "encoded-value", **options))
    assert [row.p.reason for row in rows] == [None, *["INVALID_VALUE"] * 4, None]
    with RegistryClient(registry.url) as client:
        deserializer = Deserializer(client)
        values: list[Any] = [deserializer.deserialize(bytes(row.p.value)) for row in rows if row.p.reason is None]
        assert client.latest("encoded-value").version == 1
    assert [value["id"] for value in values] == [1, 6]
    assert values[0]["at"].isoformat() == "2026-01-01T00:00:00.123000+00:00"
    assert values[1]["at"].isoformat() == "1960-01-01T00:00:00+00:00"
    assert values[0]["note"] is None
    nulls = encode(df, value, "encoded-value", registry=registry.url, on_poison="NULL")
    assert [row.p is None for row in rows_of(nulls)] == [False, True, True, True, True, False]


@pytest.mark.usefixtures("_arrow_functions")
def test_an_invalid_row_fails_the_task_by_default_with_the_field(
    spark: "SparkSession", registry: HeadgateRegistry
) -> None:
    from pyspark.sql import functions as f

    df = spark.sql(ROWS).where("n = 3")
    column = to_registry_avro(
        f.struct("id", "kind", "at", "price"), "failing-value", registry=registry.url, schema=json.dumps(ORDER)
    )
    with pytest.raises(Exception, match=r"PoisonError.*INVALID_VALUE: kind: .*ODD"):
        df.select(column).collect()


@pytest.mark.usefixtures("_arrow_functions")
def test_a_null_struct_is_a_null_payload(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    df = spark.sql("SELECT IF(id = 0, named_struct('id', id), null) AS v, id FROM range(2)")
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    payload = to_registry_avro("v", "nulls-value", registry=registry.url, schema=schema)
    assert [row.p is None for row in rows_of(df.select("id", payload.alias("p")), "id")] == [False, True]


@pytest.mark.usefixtures("_arrow_functions")
def test_an_incompatible_schema_fails_on_the_driver_with_the_message_of_the_registry(
    registry: HeadgateRegistry, spark: "SparkSession"
) -> None:
    first = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    second = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}
    to_registry_avro("value", "refused-value", registry=registry.url, schema=json.dumps(first))
    with pytest.raises(EncodingError, match=r"refused-value: the registry refused \(409\).*incompatible"):
        to_registry_avro("value", "refused-value", registry=registry.url, schema=json.dumps(second))
    with pytest.raises(EncodingError, match="refused-value"):
        to_registry_avro("value", "refused-value", registry=registry.url, schema=json.dumps(second), register=False)
    with pytest.raises(RegistryNotReady, match="does not respond"):
        to_registry_avro("value", "s", registry={"registry.url": "http://127.0.0.1:9", "registry.retries": "0"})


@pytest.mark.usefixtures("_arrow_functions")
def test_columns_that_do_not_match_the_schema_are_reported(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    from pyspark.sql import functions as f

    df = spark.sql(ROWS)
    for columns, message in ((("id", "kind", "at"), "price"), (("id", "kind", "at", "price", "n"), "no field n")):
        column = to_registry_avro(f.struct(*columns), "named-value", registry=registry.url, schema=json.dumps(ORDER))
        with pytest.raises(Exception, match=f"EncodingError.*{message}"):
            df.select(column).collect()


def test_encode_frame_needs_an_existing_column(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    with pytest.raises(FrameError, match="there is no column value; the DataFrame has id"):
        encode_frame(spark.range(1), "missing-value", registry=registry.url)
