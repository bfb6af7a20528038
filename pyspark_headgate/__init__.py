"""Makes `spark.read.format("headgate")` work with no call at all.

PySpark looks through the top-level modules whose names begin with `pyspark_` for a class `DefaultSource`, and registers
it. PySpark looks nowhere else. The data source itself is in `headgate.spark_udfs.source`.
"""

from headgate.spark_udfs.source.data_source import HeadgateDataSource as DefaultSource

__all__ = ["DefaultSource"]
