"""A Delta table, exactly once: Delta itself remembers the last batch of a writer (`txnAppId`, `txnVersion`).

Delta Lake is a set of jars of its own, one for each version of Spark. Whether those in the session work with this Spark
is tried on a small table before anything starts.
"""

import tempfile
from typing import TYPE_CHECKING, Any

from spark_udfs.pipeline.mistakes import PipelineError
from spark_udfs.pipeline.model import DeltaSink, Mode
from spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from spark_udfs.pipeline.checkpoints import BatchId

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ORDER = "headgate_order"


class DeltaWriter:
    guarantee = EXACTLY_ONCE

    def __init__(self, sink: DeltaSink, spark: "SparkSession") -> None:
        self._sink = sink
        self._spark = spark

    def check(self, schema: "StructType") -> None:
        for column in (*self._sink.keys, *self._sink.partition_by):
            if column not in schema.names:
                raise PipelineError(
                    f"sink {self._sink.name}: there is no column {column}",
                    why=f"the rows have {', '.join(schema.names)}",
                )
        require_delta(self._spark, self._sink.name)
        if self._sink.mode is Mode.UPSERT and not self._exists():
            self._options(self._spark.createDataFrame([], schema).write.format("delta")).save(self._sink.path)

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        application = f"{batch.identity}/{batch.query}/{self._sink.name}"
        if self._sink.mode is Mode.UPSERT:
            return self._merge(rows, application, batch)
        # Not while they are written: a batch that Delta knows already is not gone over at all.
        count = rows.count()
        mode = "overwrite" if self._sink.mode is Mode.REPLACE else "append"
        if count or mode == "overwrite":
            writer = rows.write.format("delta").mode(mode)
            writer = writer.option("txnAppId", application).option("txnVersion", batch.number)
            self._options(writer).save(self._sink.path)
        return Written(count)

    def _options(self, writer: Any) -> Any:
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        if self._sink.evolve:
            writer = writer.option("mergeSchema", "true")
        return writer.options(**dict(self._sink.options))

    def _merge(self, rows: "DataFrame", application: str, batch: "BatchId") -> Written:
        from pyspark.sql import functions as f

        # Of several rows with the same keys the last one counts, in the order of the partition that they came from.
        ordered = rows.withColumn(_ORDER, f.monotonically_increasing_id())
        everything = f.struct(*(f.col(f"`{name}`") for name in rows.columns))
        newest = ordered.groupBy(*self._sink.keys).agg(f.max_by(everything, f.col(_ORDER)).alias("row"))
        kept = newest.select("row.*").persist()
        try:
            count = kept.count()
            if not count:
                return Written(0)
            session = kept.sparkSession
            kept.createOrReplaceTempView("headgate_changes")
            same = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in self._sink.keys)
            session.conf.set("spark.databricks.delta.write.txnAppId", application)
            session.conf.set("spark.databricks.delta.write.txnVersion", str(batch.number))
            try:
                session.sql(
                    f"MERGE INTO delta.`{self._sink.path}` t USING headgate_changes s ON {same} "
                    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                )
            finally:
                session.conf.unset("spark.databricks.delta.write.txnAppId")
                session.conf.unset("spark.databricks.delta.write.txnVersion")
            return Written(count)
        finally:
            kept.unpersist()

    def _exists(self) -> bool:
        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, self._sink.path))


def require_delta(spark: "SparkSession", sink: str) -> None:
    """Raises `PipelineError` where the session has no Delta, or one that was made for another Spark."""
    from pyspark.errors import PySparkException

    configured = spark.conf.get("spark.sql.extensions", "") or ""
    advice = (
        f"add its jars for Spark {spark.version} (spark.jars or spark.jars.packages), spark.sql.extensions={EXTENSION} "
        f"and spark.sql.catalog.spark_catalog={CATALOG}, under [spark] or to spark-submit; or take Parquet, which is "
        "exactly once as well"
    )
    if EXTENSION not in configured:
        raise PipelineError(f"sink {sink}: this Spark has no Delta Lake", advice=advice)
    with tempfile.TemporaryDirectory() as folder:
        try:
            spark.range(1).write.format("delta").save(f"{folder}/probe")
        except Exception as error:
            # A jar for another Spark shows as any of a dozen errors of the JVM, in PySpark's clothes or not.
            name = type(error).__name__
            first = str(error) if isinstance(error, PySparkException) else _java_cause(error)
            raise PipelineError(
                f"sink {sink}: the Delta Lake of this session does not work with Spark {spark.version}",
                why=f"{name}: {first.splitlines()[0] if first else ''}",
                advice=advice,
            ) from error


def _java_cause(error: Exception) -> str:
    java: Any = getattr(error, "java_exception", None)
    return str(java) if java is not None else str(error)
