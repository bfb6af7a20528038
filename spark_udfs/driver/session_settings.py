"""Settings of a Spark session with which decoding is fastest. None changes the results.

    builder = SparkSession.builder
    for name, setting in FAST_SETTINGS.items():
        builder = builder.config(name, setting)

Most are read when a session (its JVM, its Python daemon) starts, so nothing here can set them later. Settings that a
version of Spark does not know do no harm.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
"""Since Spark 4.2, where it is on: a function on Arrow arrays takes its input in columns if the scan below it has such.
From columns that are not Arrow's (Parquet, ORC, a cached table) Spark makes rows all the same, then columns of its
own out of the result, and rows of those again: decoding takes twice the processor time."""

_ARROW_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow for Java checks every index and every null twice otherwise; Spark asks for nulls itself, and for no row that a
batch does not have."""

FAST_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Workers are forked with the decoder loaded (`spark_udfs.daemon`).
        "spark.python.daemon.module": "headgate.spark_udfs.daemon",
        "spark.python.worker.reuse": "true",
        # Between the JVM and its workers, in place of TCP (Spark 4.1).
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _ARROW_UNCHECKED,
        "spark.executor.extraJavaOptions": _ARROW_UNCHECKED,
        # Rows of an Arrow batch. Its bytes stay bounded by spark.sql.execution.arrow.maxBytesPerBatch, 64 MiB: Spark
        # adds up the bytes after each row for that. Where payloads are known to be small, 2147483647 saves it the sum.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        COLUMNAR_INPUT: "false",
    }
)


def feed_functions_by_rows(session: "SparkSession | None") -> None:
    """Turn `COLUMNAR_INPUT` off in a session that runs already, unless it has been set there, to whatever it is."""
    if session is not None and COLUMNAR_INPUT not in session.conf.getAll:
        session.conf.set(COLUMNAR_INPUT, "false")
