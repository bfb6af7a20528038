"""Real-time mode of open-source Spark with our functions, between Spark's own Kafka source and sink."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from headgate.serdes import RegistryClient, avro_schema
from headgate.serdes.framing import frame
from headgate.spark_udfs import from_registry_avro
from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.topics import create_topic, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECK = "spark.sql.streaming.realTimeMode.allowlistCheck"
SECONDS_MAX = 300
SCHEMA = '{"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}'


def started(
    spark: "SparkSession", broker: HeadgateBroker, registry: HeadgateRegistry, folder: Path
) -> "StreamingQuery":
    address = {"kafka.bootstrap.servers": broker.address}
    rows = spark.readStream.format("kafka").options(**address, subscribe="live", startingOffsets="earliest").load()
    decoded = from_registry_avro("value", "live-value", registry=registry.url)
    # PySpark's types do not contain `realTime`.
    written: Any = rows.select(f.to_json(decoded).alias("value")).writeStream.format("kafka").options(**address)
    written = written.option("topic", "live-out").option("checkpointLocation", str(folder))
    query: StreamingQuery = written.outputMode("update").trigger(realTime="5 seconds").start()
    return query


def test_functions_in_python_run_only_without_the_allowlist(
    spark: "SparkSession", headgate_broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path
) -> None:
    if "spark-sql-kafka" not in (spark.conf.get("spark.jars", "") or ""):
        unavailable("Spark's own Kafka source could not be fetched")
    with RegistryClient(registry.url) as client:
        number = client.register("live-value", avro_schema(SCHEMA)).id
    assert number is not None
    for topic in ("live", "live-out"):
        create_topic(headgate_broker.address, topic)
    produce(headgate_broker.address, "live", [frame(number, b"\2"), b"poison"])
    with pytest.raises(Exception, match="ArrowEvalPythonExec is not in the operator allowlist"):
        started(spark, headgate_broker, registry, tmp_path / "rejected").awaitTermination(SECONDS_MAX)
    spark.conf.set(CHECK, "false")
    query = started(spark, headgate_broker, registry, tmp_path / "accepted")
    try:
        options = {"kafka.bootstrap.servers": headgate_broker.address, "subscribe": "live-out"}
        found: set[str] = set()
        deadline = time.monotonic() + SECONDS_MAX
        while len(found) < 2:
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline
            out = spark.read.format("kafka").options(**options).load()
            found = {row.value for row in out.select(f.col("value").cast("string").alias("value")).collect()}
        assert any('"id":1' in text for text in found)
        assert any("BAD_MAGIC" in text for text in found)
    finally:
        query.stop()
        spark.conf.unset(CHECK)
