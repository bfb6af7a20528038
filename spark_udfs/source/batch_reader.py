"""Reader of batch queries: the driver plans offset ranges, and each task reads one range."""

from collections.abc import Iterator, Sequence

from pyarrow import lib as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.loop import loop_thread
from headgate.spark_udfs.source.options import ReadOptions
from headgate.spark_udfs.source.planning import batch_ranges
from headgate.spark_udfs.source.range_partition import RangePartition
from headgate.spark_udfs.source.ranges import OffsetRange
from headgate.spark_udfs.source.reading import ReadSpec, read_range


class BatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, spec: ReadSpec) -> None:
        self._options = options
        self._spec = spec

    def partitions(self) -> Sequence[InputPartition]:
        return [RangePartition(one) for one in loop_thread().run(self._ranges())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # If the plan has no partitions, Spark creates an empty partition.
        return read_range(self._spec, partition.wanted) if isinstance(partition, RangePartition) else iter(())

    async def _ranges(self) -> list[OffsetRange]:
        cluster = Cluster(self._options.connection)
        try:
            return await batch_ranges(cluster, self._options)
        finally:
            await cluster.close()
