"""SQL functions. After `install(spark)`:

    SELECT headgate_schema_id(value), count(*) FROM orders GROUP BY 1
    SELECT * FROM headgate_decode(TABLE(SELECT value FROM orders), 'orders-value')

After `register_function(spark, "decode_order", "orders-value")`:

    SELECT d.value.id, d.reason FROM (SELECT decode_order(value) AS d FROM orders)

`headgate_decode` decodes the column `value` of a table, or its only column. The result has the other columns, `value`,
`reason`, `schema_id` and `raw`. Spark finds its columns when it analyzes the query, and passes the rows one by one. Use
it for ad-hoc queries, and the other functions for production.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.compatibility import need_data_sources
from headgate.spark_udfs.extra import need_spark
from headgate.spark_udfs.frame import FrameError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.spark_udfs.driver.planning import Registry

SCHEMA_ID_FUNCTION = "headgate_schema_id"
DECODE_FUNCTION = "headgate_decode"


def install(
    spark: "SparkSession | None" = None, *, registry: "Registry" = None, on_registry_down: str = "WAIT"
) -> None:
    """Register the SQL functions and the data source `headgate` in a session, by default the active one.

    `headgate_decode` uses `registry`, by default the one of the current Spark configuration, and `on_registry_down`.
    """
    need_spark()
    need_data_sources("install", "register_function")
    from pyspark.sql import SparkSession as Session

    from headgate.spark_udfs.driver.registry_resolution import resolve
    from headgate.spark_udfs.spec.policy import OnRegistryDown
    from headgate.spark_udfs.table_function import decode_table_function

    session = spark if spark is not None else Session.getActiveSession()
    if session is None:
        raise FrameError("there is no active Spark session; pass one: install(spark)")
    _register_source(session)
    session.sql(
        f"CREATE OR REPLACE TEMPORARY FUNCTION {SCHEMA_ID_FUNCTION}(payload BINARY) RETURNS BIGINT RETURN "
        "CASE WHEN octet_length(payload) >= 5 AND substring(payload, 1, 1) = X'00' "
        "THEN CAST(conv(hex(substring(payload, 2, 4)), 16, 10) AS BIGINT) END"
    )
    function = decode_table_function(resolve(registry, None, session), OnRegistryDown.of(on_registry_down))
    session.udtf.register(DECODE_FUNCTION, function)


def register_function(
    spark: "SparkSession",
    name: str,
    subject: str | None = None,
    *,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_poison: str = "DEAD_LETTER",
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> None:
    """Register `from_registry_avro` for one subject as a SQL function."""
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
    from headgate.spark_udfs.driver.registry_resolution import resolve
    from headgate.spark_udfs.functions import decoding_function

    choice = choice_of(subject, version, schema_id, schema, fields)
    options = resolve(registry, None, spark)
    decoding = plan_decoding(
        choice, options, on_poison=on_poison, on_new_version=on_new_version, on_registry_down=on_registry_down
    )
    spark.udf.register(name, decoding_function(decoding))


def _register_source(spark: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    from headgate.spark_udfs.source.data_source import HeadgateDataSource

    try:
        spark.dataSource.register(HeadgateDataSource)
    except PySparkException as error:
        # PySpark 4.0 has found the data source already, and rejects a second one.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
