"""The data source `headgate`: reads topics as DataFrames and writes DataFrames to topics. It requires no jar.

Spark loads `data_source` through `pyspark_headgate` or `spark.dataSource.register`. Submodules are imported on first
use, so that this package can be imported without pyspark.
"""
