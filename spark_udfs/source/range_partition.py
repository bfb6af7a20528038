"""The partition of one task of a Spark query."""

from pyspark.sql.datasource import InputPartition

from headgate.spark_udfs.source.ranges import OffsetRange


class RangePartition(InputPartition):
    """The offset range of one task."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted
