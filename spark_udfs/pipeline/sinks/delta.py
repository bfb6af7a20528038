"""A Delta table, exactly once: Delta itself remembers the last batch of a writer (`txnAppId`, `txnVersion`).

Delta Lake is a set of jars of its own, one for each version of Spark. Before anything starts, an empty frame is written
to the table: that makes it where it is not there, lets it grow where it may, and tells what would fail later, be it
jars for another Spark, columns that the table does not have, or a place that cannot be written to.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.frame import quoted
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import DeltaSink, Mode
from headgate.spark_udfs.pipeline.sinks.partitions import parted
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

ATTEMPTS_MAX = 5
"""Of one batch, when others change the same rows or columns meanwhile. Each attempt starts from what they left."""

_CHANGES = "headgate_changes"
_CONFLICT = re.compile(r"\[DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)")
_OTHER_SPARK = re.compile(
    r"NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError"
    r"|IncompatibleClassChangeError|IllegalAccessError|VerifyError|DATA_SOURCE_NOT_FOUND|CATALOG_NOT_FOUND"
    r"|[Cc]annot find catalog plugin|'JavaPackage' object is not callable"
)
"""How jars that were made for another Spark show, and jars that are not there."""


class DeltaWriter:
    guarantee = EXACTLY_ONCE

    def __init__(self, sink: DeltaSink, spark: "SparkSession", refused: RefusedRows | None = None) -> None:
        self._sink = sink
        self._spark = spark
        self._refused = refused

    def check(self, schema: "StructType") -> None:
        for column in (*self._sink.keys, *self._sink.partition_by):
            if column not in schema.names:
                raise PipelineError(
                    f"sink {self._sink.name}: there is no column {column}",
                    why=f"the rows have {', '.join(schema.names)}",
                )
        require_delta(self._spark, self._sink.name)
        try:
            there = self._columns()
            self._require_columns(there, schema)
            # Replacing may change every column, and no rows would replace all there are.
            if there is None or self._sink.mode is not Mode.REPLACE:
                nothing = self._spark.createDataFrame([], schema)
                self._options(nothing.write.format("delta").mode("append")).save(self._sink.path)
            # Reads what the table remembers, as every batch will: the first that jars for another Spark cannot do.
            self._spark.read.format("delta").load(self._sink.path).limit(1).collect()
        except PipelineError:
            raise
        except Exception as error:
            # Errors of the JVM come in PySpark's clothes or not.
            raise _unusable(self._sink, self._spark.version, error) from error

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        application = f"{batch.identity}/{batch.query}/{self._sink.name}"
        last = self._last_batch(application)
        if last is not None and last >= batch.number:
            return Written(0, repeated=True)
        rows, refused = parted(rows, self._sink.partition_by, self._refused, batch)
        if self._sink.mode is Mode.UPSERT:
            return Written(self._merge(rows, application, batch), refused)
        # Not while they are written: an attempt that fails would have counted, too.
        count = rows.count()
        mode = "overwrite" if self._sink.mode is Mode.REPLACE else "append"
        if count or mode == "overwrite":
            writer = rows.write.format("delta").mode(mode)
            writer = writer.option("txnAppId", application).option("txnVersion", batch.number)
            _insisting(lambda: self._options(writer).save(self._sink.path))
        return Written(count, refused)

    def _options(self, writer: "DataFrameWriter") -> "DataFrameWriter":
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        if self._sink.evolve:
            writer = writer.option("mergeSchema", "true")
        return writer.options(**dict(self._sink.options))

    def _merge(self, rows: "DataFrame", application: str, batch: "BatchId") -> int:
        from pyspark.sql import functions as f

        # Of several rows with the same keys the last one counts, in the order of the partition that they came from.
        # The rows' columns stay inside structs: whatever their names are, they are not mistaken for these.
        placed = rows.select(
            _struct(self._sink.keys).alias("keys"),
            _struct(rows.columns).alias("row"),
            f.monotonically_increasing_id().alias("position"),
        )
        newest = placed.groupBy("keys").agg(f.max_by("row", "position").alias("row"))
        kept = newest.select("row.*").persist()
        try:
            count = kept.count()
            if not count:
                return 0
            session = kept.sparkSession
            kept.createOrReplaceTempView(_CHANGES)
            session.conf.set("spark.databricks.delta.write.txnAppId", application)
            session.conf.set("spark.databricks.delta.write.txnVersion", str(batch.number))
            try:
                _insisting(lambda: session.sql(self._merge_statement(rows.columns)))
            finally:
                session.conf.unset("spark.databricks.delta.write.txnAppId")
                session.conf.unset("spark.databricks.delta.write.txnVersion")
                session.catalog.dropTempView(_CHANGES)
            return count
        finally:
            kept.unpersist()

    def _merge_statement(self, columns: list[str]) -> str:
        # Column by column: the table may have others, which stay as they are.
        names = [quoted(name) for name in columns]
        same = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in self._sink.keys)
        verb = "MERGE WITH SCHEMA EVOLUTION INTO" if self._sink.evolve else "MERGE INTO"
        return (
            f"{verb} delta.{quoted(self._sink.path)} t USING {_CHANGES} s ON {same} "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def _columns(self) -> list[str] | None:
        """None where there is no table."""
        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        if not jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, self._sink.path):
            return None
        return self._spark.read.format("delta").load(self._sink.path).columns

    def _require_columns(self, there: list[str] | None, schema: "StructType") -> None:
        if there is None or self._sink.evolve or self._sink.mode is Mode.REPLACE:
            return
        known = {name.lower() for name in there}
        for name in schema.names:
            if name.lower() not in known:
                raise PipelineError(
                    f"sink {self._sink.name}: the table {self._sink.path} has no column {name}",
                    why=f"it has {', '.join(there)}",
                    advice="add it, leave the field out in a transform, or set evolve = true to have it added",
                )

    def _last_batch(self, application: str) -> int | None:
        """What Delta remembers of a writer. It passes over a batch that it knows without a word; the metrics tell."""
        from py4j.protocol import Py4JError, Py4JJavaError

        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        try:
            log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, self._sink.path)
            found = log.unsafeVolatileSnapshot().transactions().get(application)
            return int(found.get()) if found.isDefined() else None
        except Py4JJavaError:
            raise
        except (Py4JError, TypeError):
            # Not a public interface: where another Delta has none of it, only the count of rows is less exact.
            return None


def require_delta(spark: "SparkSession", sink: str) -> None:
    """Raises `PipelineError` where the session was started without Delta."""
    if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise PipelineError(f"sink {sink}: this Spark has no Delta Lake", advice=_advice(spark.version))


def _advice(version: str) -> str:
    return (
        f"add its jars for Spark {version} (spark.jars or spark.jars.packages), spark.sql.extensions={EXTENSION} "
        f"and spark.sql.catalog.spark_catalog={CATALOG}, under [spark] or to spark-submit; or take Parquet, which is "
        "exactly once as well"
    )


def _unusable(sink: DeltaSink, version: str, error: Exception) -> PipelineError:
    java: Any = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    why = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    if _OTHER_SPARK.search(text):
        what = f"sink {sink.name}: the Delta Lake of this session does not work with Spark {version}"
        return PipelineError(what, why=why, advice=_advice(version))
    return PipelineError(f"sink {sink.name}: the Delta table {sink.path} does not take these rows", why=why)


def _insisting(work: Callable[[], object]) -> None:
    """Again where somebody else was faster. Delta's memory of the batch makes that safe."""
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            work()
            return
        except Exception as error:
            if not _CONFLICT.search(str(error)):
                raise
    work()


def _struct(names: Sequence[str]) -> "Column":
    from pyspark.sql import functions as f

    return f.struct(*(f.col(quoted(name)) for name in names))
