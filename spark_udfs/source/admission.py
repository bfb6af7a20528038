"""Stream reader for PySpark 4.2 and later: Spark limits the size of a micro-batch and ends queries."""

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headgate.spark_udfs.source.offsets import by_topic
from headgate.spark_udfs.source.stream_reader import OffsetJson, PositionedReader


class StreamReader(PositionedReader, SupportsTriggerAvailableNow):
    def getDefaultReadLimit(self) -> ReadLimit:
        records_max = self._options.records_per_trigger_max
        return ReadAllAvailable() if records_max is None else ReadMaxRows(records_max)

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:
        return self.positions.next(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def prepareForTriggerAvailableNow(self) -> None:
        self.positions.aim()

    def reportLatestOffset(self) -> OffsetJson | None:
        latest = self.positions.latest
        return dict(by_topic(latest)) if latest else None
