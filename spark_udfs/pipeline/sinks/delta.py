"""Delta sink, exactly once: Delta itself stores the last batch of a writer (`txnAppId`, `txnVersion`).

Delta Lake needs its own jars, one set per Spark version. Before the pipeline starts, the sink writes an empty DataFrame
to the table. That creates a missing table, adds columns where allowed, and detects problems early: jars for another
Spark version, missing columns, a path without write permission. The table is a folder, or a name in a catalog.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.spark_udfs.driver.laziness import quoted
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Mode, Options
from headgate.spark_udfs.pipeline.sinks.partitions import refuse_invalid_partitions
from headgate.spark_udfs.pipeline.sinks.sink import DEAD_LETTERS, DeadLetterSink, SinkContext
from headgate.spark_udfs.pipeline.sinks.table_evolution import Change, changes
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

ATTEMPTS_MAX = 5
"""Attempts for one batch when other writers change the same rows or columns. Each attempt starts from the new state."""

_CHANGES = "headgate_changes"
_CONFLICT = re.compile(r"\[DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)")
_JARS_MISSING = re.compile(
    r"NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError"
    r"|IncompatibleClassChangeError|IllegalAccessError|VerifyError|DATA_SOURCE_NOT_FOUND|CATALOG_NOT_FOUND"
    r"|[Cc]annot find catalog plugin|'JavaPackage' object is not callable"
)
"""Errors caused by missing jars, or by jars for another Spark version."""


@dataclass(frozen=True, slots=True)
class DeltaSink(DeadLetterSink):
    path: str | None
    """The folder of the table. None if it has a name."""
    partition_by: tuple[str, ...] = ()
    evolve: bool = False
    options: Options = field(default_factory=dict)
    mode: Mode = field(default=Mode.APPEND, kw_only=True)
    table: tuple[str, ...] = field(default=(), kw_only=True)
    """The name in a catalog: catalog, schema and table; or schema and table; or table."""

    can_share_folder: ClassVar[bool] = True

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "DeltaSink":
        keys = table.texts("keys")
        return cls(
            name,
            input_,
            path=_path(table),
            table=_table(table),
            mode=fields.write_mode(table, tuple(Mode), keys),
            keys=keys,
            partition_by=table.texts("partition_by"),
            evolve=table.boolean("evolve", False),
            options=table.options("options"),
            on_refused=fields.on_refused(table),
        )

    @classmethod
    def for_dead_letters(cls, table: "TableReader") -> "DeltaSink":
        return cls(DEAD_LETTERS, "", _path(table), table=_table(table))

    def describe(self) -> tuple[str, str]:
        return f"Delta {self.location}, {self.mode_text()}", EXACTLY_ONCE

    def open(self, context: SinkContext) -> "DeltaWriter":
        return DeltaWriter(self, context.spark, context.refused_rows(self))

    @property
    def folder(self) -> str | None:
        return self.path

    @property
    def location(self) -> str:
        """The folder or the name, for messages."""
        return self.path or ".".join(self.table)

    @property
    def sql_name(self) -> str:
        return ".".join(quoted(part) for part in self.table or ("delta", self.path or ""))

    def session_settings(self, spark: Options) -> Mapping[str, str]:
        """Nothing without jars: the session would not start, and the error of `check` is more useful."""
        has_jars = any("delta" in spark.get(name, "") for name in ("spark.jars", "spark.jars.packages"))
        if not has_jars or "spark.sql.extensions" in spark:
            return {}
        return {
            "spark.sql.extensions": EXTENSION,
            "spark.sql.catalog.spark_catalog": CATALOG,
            # The default of 50 tasks per read of the table log is too slow for small batches.
            "spark.databricks.delta.snapshotPartitions": "4",
        }


def _path(table: "TableReader") -> str | None:
    if table.has("table"):
        if table.text("path") is not None:
            table.wrong("path", "path and table are mutually exclusive")
        return None
    return fields.folder(table)


def _table(table: "TableReader") -> tuple[str, ...]:
    return fields.table_name(table) if table.has("table") else ()


class DeltaWriter:
    def __init__(self, sink: DeltaSink, spark: "SparkSession", refused: RefusedRows | None = None) -> None:
        self._sink = sink
        self._spark = spark
        self._refused = refused
        self._path = sink.path

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
            self._evolve(there, schema)
            # A replacement may change every column, and an empty one would delete all rows.
            if there is None or self._sink.mode is not Mode.REPLACE:
                nothing = self._spark.createDataFrame([], schema)
                self._save(nothing.write.format("delta").mode("append"))
            # Every batch reads the table state. Jars for another Spark version fail here first.
            self._spark.read.table(self._sink.sql_name).limit(1).collect()
        except PipelineError:
            raise
        except Exception as error:
            # JVM errors arrive as PySpark exceptions or as Py4J exceptions.
            raise _unusable(self._sink, self._spark.version, error) from error

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        application = f"{batch.identity}/{batch.query}/{self._sink.name}"
        last = self._last_batch(application)
        if last is not None and last >= batch.number:
            return Written(0, repeated=True)
        rows, refused = refuse_invalid_partitions(rows, self._sink.partition_by, self._refused, batch)
        if self._sink.mode is Mode.UPSERT:
            return Written(self._merge(rows, application, batch), refused)
        # Not counted during the write: a failed attempt would count as well.
        count = rows.count()
        mode = "overwrite" if self._sink.mode is Mode.REPLACE else "append"
        if count or mode == "overwrite":
            writer = rows.write.format("delta").mode(mode)
            writer = writer.option("txnAppId", application).option("txnVersion", batch.number)
            _retry_conflicts(lambda: self._save(writer))
        return Written(count, refused)

    def _save(self, writer: "DataFrameWriter") -> None:
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        if self._sink.evolve:
            writer = writer.option("mergeSchema", "true")
        writer = writer.options(**dict(self._sink.options))
        if self._sink.path is None:
            writer.saveAsTable(self._sink.sql_name)
        else:
            writer.save(self._sink.path)

    def _merge(self, rows: "DataFrame", application: str, batch: "BatchId") -> int:
        from pyspark.sql import functions as f

        # The last of several rows with equal keys wins, in the order of the partition they came from.
        # The row stays inside a struct, so that its column names cannot collide with these.
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
                _retry_conflicts(lambda: session.sql(self._merge_statement(rows.columns)))
            finally:
                session.conf.unset("spark.databricks.delta.write.txnAppId")
                session.conf.unset("spark.databricks.delta.write.txnVersion")
                session.catalog.dropTempView(_CHANGES)
            return count
        finally:
            kept.unpersist()

    def _merge_statement(self, columns: list[str]) -> str:
        # Column by column: other columns of the table stay unchanged.
        names = [quoted(name) for name in columns]
        same = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in self._sink.keys)
        verb = "MERGE WITH SCHEMA EVOLUTION INTO" if self._sink.evolve else "MERGE INTO"
        return (
            f"{verb} {self._sink.sql_name} t USING {_CHANGES} s ON {same} "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def _columns(self) -> "StructType | None":
        """None if there is no table."""
        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        if self._sink.path is None:
            is_there = self._spark.catalog.tableExists(self._sink.sql_name)
        else:
            is_there = jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, self._sink.path)
        return self._spark.read.table(self._sink.sql_name).schema if is_there else None

    def _evolve(self, there: "StructType | None", schema: "StructType") -> None:
        """Widen columns, with `evolve`. Reject other changes. The write of an empty DataFrame adds new columns."""
        if there is None or self._sink.mode is Mode.REPLACE:
            return
        needed = changes(there, schema)
        table = f"sink {self._sink.name}: the table {self._sink.location}"
        for change in needed:
            if change.before is not None and not change.is_widened:
                raise PipelineError(
                    f"{table} cannot store these rows",
                    why=str(change),
                    advice="cast the column in a transform, or write to another table",
                )
            if not self._sink.evolve:
                what = f"has no column {'.'.join(change.path)}" if change.before is None else "has a narrower column"
                why = f"it has {', '.join(there.names)}" if change.before is None else str(change)
                advice = "change the column, or convert the rows in a transform, or set evolve = true"
                raise PipelineError(f"{table} {what}", why=why, advice=advice)
        for change in needed:
            if change.is_widened:
                self._widen(change)

    def _widen(self, change: Change) -> None:
        try:
            self._spark.sql(f"ALTER TABLE {self._sink.sql_name} ALTER COLUMN {change.name} TYPE {change.after}")
        except Exception as error:
            if "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP" not in str(error):
                raise
            raise PipelineError(
                f"sink {self._sink.name}: Delta does not widen columns of the table {self._sink.location}",
                why=str(change),
                advice=f"ALTER TABLE {self._sink.sql_name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            ) from error

    def _last_batch(self, application: str) -> int | None:
        """The last batch of a writer. Delta skips a known batch silently; this lets the metrics count it."""
        from py4j.protocol import Py4JError, Py4JJavaError

        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        try:
            if self._path is None:
                (detail,) = self._spark.sql(f"DESCRIBE DETAIL {self._sink.sql_name}").select("location").collect()
                self._path = detail.location
            log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, self._path)
            found = log.unsafeVolatileSnapshot().transactions().get(application)
            return int(found.get()) if found.isDefined() else None
        except Py4JJavaError:
            raise
        except (Py4JError, TypeError):
            # Not a public interface. Without it, only the row count of repeated batches is wrong.
            return None


def require_delta(spark: "SparkSession", sink: str) -> None:
    """Raises `PipelineError` if the session was started without Delta."""
    if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise PipelineError(f"sink {sink}: this Spark session has no Delta Lake", advice=_advice(spark.version))


def _advice(version: str) -> str:
    return (
        f"add its jars for Spark {version} (spark.jars or spark.jars.packages), spark.sql.extensions={EXTENSION} "
        f"and spark.sql.catalog.spark_catalog={CATALOG}, in [spark] or for spark-submit; or use Parquet, which is "
        "exactly once as well"
    )


def _unusable(sink: DeltaSink, version: str, error: Exception) -> PipelineError:
    java: Any = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    why = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    if _JARS_MISSING.search(text):
        what = f"sink {sink.name}: the Delta Lake of this session does not work with Spark {version}"
        return PipelineError(what, why=why, advice=_advice(version))
    return PipelineError(f"sink {sink.name}: the Delta table {sink.location} rejects these rows", why=why)


def _retry_conflicts(work: Callable[[], object]) -> None:
    """Retry after a conflict with another writer. Safe, because Delta stores the batch number."""
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
