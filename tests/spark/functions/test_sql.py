"""The SQL functions."""

from typing import TYPE_CHECKING

import pytest

from headgate.spark_udfs import install, register_function
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import CUSTOMER_V2, encoded, frame_of, register, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def first_id(spark: "SparkSession", registry: HeadgateRegistry) -> int:
    (number,) = register(registry, "sql-value", CUSTOMER_V2)
    install(spark, registry=registry.url)
    good = encoded(CUSTOMER_V2, {"id": 1, "fullname": "Ada", "email": None}, number)
    frame_of(spark, [good, good[:-1], None]).createOrReplaceTempView("sql_customers")
    return number


def test_schema_ids_in_sql(spark: "SparkSession", first_id: int) -> None:
    rows = spark.sql("SELECT headgate_schema_id(value) AS id, count(*) AS c FROM sql_customers GROUP BY 1").collect()
    assert {row.id: row.c for row in rows} == {first_id: 2, None: 1}


def test_a_function_for_a_subject_in_sql(spark: "SparkSession", registry: HeadgateRegistry, first_id: int) -> None:
    register_function(spark, "decode_customer", "sql-value", registry=registry.url, fields=["fullname"])
    rows = spark.sql("SELECT d.* FROM (SELECT n, decode_customer(value) AS d FROM sql_customers) ORDER BY n").collect()
    assert [row.value and row.value.asDict() for row in rows] == [{"fullname": "Ada"}, None, None]
    assert [row.reason for row in rows] == [None, "TRUNCATED", "NULL"]
    assert (
        spark.sql("SELECT decode_customer(value).value.fullname AS f FROM sql_customers WHERE n = 0").first()
        is not None
    )


def test_the_table_function_has_the_columns_of_its_subject(spark: "SparkSession", first_id: int) -> None:
    df = spark.sql("SELECT * FROM headgate_decode(TABLE(SELECT n, value FROM sql_customers), 'sql-value')")
    assert df.columns == ["n", "value", "reason", "schema_id", "raw"]
    rows = rows_of(df)
    assert rows[0].value.asDict() == {"id": 1, "fullname": "Ada", "email": None}
    assert [(row.n, row.reason) for row in rows] == [(0, None), (1, "TRUNCATED"), (2, "NULL")]
    few = spark.sql("SELECT value.id FROM headgate_decode(TABLE(SELECT value FROM sql_customers), 'sql-value', 'id')")
    assert sorted(str(row.id) for row in few.collect()) == ["1", "None", "None"]


def test_the_table_function_reports_errors_during_analysis(spark: "SparkSession", first_id: int) -> None:
    with pytest.raises(Exception, match="spelling"):
        spark.sql("SELECT * FROM headgate_decode(TABLE(SELECT value FROM sql_customers), 'sqll-value')")
    with pytest.raises(Exception, match="binary column"):
        spark.sql("SELECT * FROM headgate_decode(TABLE(SELECT n FROM sql_customers), 'sql-value')")


def test_install_registers_the_data_source(spark: "SparkSession", first_id: int) -> None:
    with pytest.raises(Exception, match="subscribe"):
        spark.read.format("headgate").option("bootstrap.servers", "127.0.0.1:9").load().collect()
