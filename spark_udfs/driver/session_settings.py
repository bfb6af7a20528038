"""Spark session settings for the fastest decoding. None of them changes the results.

    builder = SparkSession.builder
    for name, setting in FAST_SETTINGS.items():
        builder = builder.config(name, setting)

Spark reads most of them when a session starts, so they cannot be set later. Spark ignores settings that it does not
know.
"""

from collections.abc import Mapping
from types import MappingProxyType

COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
"""Enabled by default since Spark 4.2: an Arrow function reads columnar input if the scan is columnar. For columns other
than Arrow (Parquet, ORC, a cached table) Spark converts to rows, to columns and to rows again, which doubles the CPU
time of decoding."""

_ARROW_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Disables redundant index and null checks in Arrow for Java. Spark checks nulls itself, and never reads beyond a
batch."""

FAST_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Forks workers with the decoder loaded (`spark_udfs.daemon`).
        "spark.python.daemon.module": "headgate.spark_udfs.daemon",
        "spark.python.worker.reuse": "true",
        # Replaces TCP between the JVM and its workers (Spark 4.1 and later).
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _ARROW_UNCHECKED,
        "spark.executor.extraJavaOptions": _ARROW_UNCHECKED,
        # Rows of an Arrow batch. spark.sql.execution.arrow.maxBytesPerBatch (64 MiB) limits its bytes; Spark adds them
        # up after each row. If all payloads are small, a limit of 2147483647 saves that work.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        COLUMNAR_INPUT: "false",
    }
)
