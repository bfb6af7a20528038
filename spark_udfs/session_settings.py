"""Settings of a Spark session with which decoding is fastest. None changes the results.

    builder = SparkSession.builder
    for name, setting in FAST_SETTINGS.items():
        builder = builder.config(name, setting)

They are read when a session (its JVM, its Python daemon) starts, so nothing here can set them later. Settings that a
version of Spark does not know do no harm.
"""

from collections.abc import Mapping
from types import MappingProxyType

_ARROW_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow for Java checks every index and every null twice otherwise; Spark asks for nulls itself, and for no row that a
batch does not have."""

FAST_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Workers are forked with the decoder loaded (`spark_udfs.daemon`).
        "spark.python.daemon.module": "spark_udfs.daemon",
        "spark.python.worker.reuse": "true",
        # Between the JVM and its workers, in place of TCP (Spark 4.1).
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _ARROW_UNCHECKED,
        "spark.executor.extraJavaOptions": _ARROW_UNCHECKED,
        # Rows of an Arrow batch. Its bytes stay bounded by spark.sql.execution.arrow.maxBytesPerBatch, 64 MiB: Spark
        # adds up the bytes after each row for that. Where payloads are known to be small, 2147483647 saves it the sum.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    }
)
