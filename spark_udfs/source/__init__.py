"""The data source `headgate`: topics to DataFrames and back over the Kafka protocol, with no jar.

`data_source` is what Spark loads (through `pyspark_headgate`, or `spark.dataSource.register`). Each part is imported
when it is used, so that this package can be imported where pyspark is not installed.
"""
