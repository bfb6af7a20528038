"""Makes `spark.read.format("headgate")` work with no call at all.

PySpark looks through the top-level modules whose names begin with `pyspark_` for a class `DefaultSource`, and registers
what it finds; it looks nowhere else. That is all this package is for: the source itself is `spark_udfs.source`.
"""

from spark_udfs.source.data_source import HeadgateDataSource as DefaultSource

__all__ = ["DefaultSource"]
