"""Reader of streaming queries: the driver plans offsets of micro-batches, and executors read ranges.

Spark stores the offsets in its checkpoint and returns them after a restart. The reader uses no consumer group and
commits no offsets to Kafka. Since PySpark 4.2, Spark limits the size of a batch (admission control). In earlier
versions, `LegacyStreamReader` tracks the end of the last batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import lib as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.loop import loop_thread
from headgate.spark_udfs.source.offsets import INITIAL, Mark, Offsets, from_json, to_json
from headgate.spark_udfs.source.options import ReadOptions
from headgate.spark_udfs.source.planning import (
    check_gone,
    check_recreated,
    partitions_and_latest,
    resolved,
    stream_ranges,
)
from headgate.spark_udfs.source.positions import EARLIEST, AtEdge, AtOffsets, Edge
from headgate.spark_udfs.source.range_partition import RangePartition
from headgate.spark_udfs.source.ranges import limited
from headgate.spark_udfs.source.reading import ReadSpec, read_range

OffsetJson = dict[str, Any]


class StreamPositions:
    """Position and limits of a stream. Both readers share it."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._thread = loop_thread()
        self._cluster = Cluster(options.connection)
        self._begun_at: OffsetJson | None = None
        """The result of `initial`, until the first batch is planned."""
        self._target: Mark | None = None
        """The end offsets of a query with Trigger.AvailableNow."""
        self.latest: Offsets = {}
        """The ends of the partitions when they were last requested."""

    def initial(self) -> OffsetJson:
        self._begun_at = to_json(self._thread.run(self._initial()))
        return self._begun_at

    def next(self, start: OffsetJson, records_max: int | None) -> OffsetJson:
        """Returns the end of a batch that begins at `start`. Returns `start` if there are no new records."""
        is_first = self._begun_at is not None and start == self._begun_at
        self._begun_at = None
        begin = self._mark(start)
        latest = self._target if self._target is not None else self._thread.run(self._ends())
        self.latest = latest.offsets
        if self._options.is_loss_fatal:
            # Check before Spark stores the batch in its checkpoint, because Spark repeats a stored batch unchanged.
            check_gone(self._options, begin.offsets.keys() - latest.offsets.keys())
            check_recreated(self._options, begin, latest)
        recreated = begin.recreated(latest)
        end = latest.offsets
        if records_max is not None:
            known = {at: offset for at, offset in begin.offsets.items() if at in end and at not in recreated}
            beginning = end.keys() - known.keys()
            known |= self._thread.run(self._cluster.edges(beginning, EARLIEST, self._options.isolation))
            end = limited(known, end, records_max)
        if end == begin.offsets and not recreated and not (is_first and self._is_moving()):
            return start
        # Keep known ids if an older broker sends none.
        topics = {at.topic for at in end}
        known_ids = {topic: id_ for topic, id_ in begin.topic_ids.items() if topic in topics}
        planned = to_json(Mark(end, known_ids | latest.topic_ids))
        return {**planned, INITIAL: start} if is_first else planned

    def aim(self) -> None:
        """Limits the stream to the current ends."""
        self._target = self._thread.run(self._ends())

    def ranges(self, start: OffsetJson, end: OffsetJson) -> list[RangePartition]:
        begin = self._mark(end.get(INITIAL, start))
        found = self._thread.run(stream_ranges(self._cluster, self._options, begin, self._mark(end)))
        return [RangePartition(one) for one in found]

    def close(self) -> None:
        self._thread.run(self._cluster.close())

    def _is_moving(self) -> bool:
        """Returns whether the start position can change. If so, an empty first batch stores it in the checkpoint."""
        start = self._options.start
        return not isinstance(start, AtOffsets) and start != AtEdge(EARLIEST)

    def _mark(self, nested: OffsetJson) -> Mark:
        mark = from_json(nested)
        return mark if self._options.checks_topic_ids else Mark(mark.offsets)

    async def _initial(self) -> Mark:
        places = await self._cluster.partitions(self._options.selection)
        ids = self._cluster.topic_ids(places) if self._options.checks_topic_ids else {}
        return Mark(await resolved(self._cluster, self._options, self._options.start, Edge.START, places), ids)

    async def _ends(self) -> Mark:
        return await partitions_and_latest(self._cluster, self._options)


class PositionedReader(DataSourceStreamReader):
    """The parts that do not depend on the version of Spark."""

    def __init__(self, options: ReadOptions, spec: ReadSpec) -> None:
        self._options = options
        self._spec = spec
        self._positions: StreamPositions | None = None

    @property
    def positions(self) -> StreamPositions:
        # Create it on first use: the reader is pickled to the executors, which only call `read`.
        if self._positions is None:
            self._positions = StreamPositions(self._options)
        return self._positions

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_positions": None}

    def initialOffset(self) -> OffsetJson:
        return self.positions.initial()

    def partitions(self, start: OffsetJson, end: OffsetJson) -> Sequence[InputPartition]:
        return self.positions.ranges(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._spec, partition.wanted) if isinstance(partition, RangePartition) else iter(())

    def commit(self, end: OffsetJson) -> None:
        """Nothing to do: offsets are in the checkpoint."""

    def stop(self) -> None:
        if self._positions is not None:
            self._positions.close()


class LegacyStreamReader(PositionedReader):
    """For PySpark 4.0 and 4.1, which request the latest offset without the end of the last batch.

    The first batch after a restart therefore reads all available records. `maxOffsetsPerTrigger` applies from the next
    batch on.
    """

    def __init__(self, options: ReadOptions, spec: ReadSpec) -> None:
        super().__init__(options, spec)
        self._end: OffsetJson | None = None

    def initialOffset(self) -> OffsetJson:
        self._end = super().initialOffset()
        return self._end

    def latestOffset(self) -> OffsetJson:  # type: ignore[override]  # signature before 4.2, which 4.2 still accepts
        if self._end is None:
            self._end = self.positions.next({}, None)
        else:
            self._end = self.positions.next(self._end, self._options.records_per_trigger_max)
        return self._end

    def partitions(self, start: OffsetJson, end: OffsetJson) -> Sequence[InputPartition]:
        self._end = end
        return super().partitions(start, end)
