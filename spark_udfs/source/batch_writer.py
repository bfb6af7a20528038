"""Writer of batch queries. `spark_udfs.source.writing` writes the records of a task."""

from collections.abc import Iterator

from pyarrow import lib as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headgate.spark_udfs.source.options import WriteOptions
from headgate.spark_udfs.source.records import check_columns
from headgate.spark_udfs.source.writing import write_batches


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_batches(self._options, iterator)
