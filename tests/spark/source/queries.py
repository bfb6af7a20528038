"""The role of Spark in tests of stream readers: queries that call the reader and keep the checkpoint."""

import json
import pickle
from typing import Any

import pytest

from headgate.spark_udfs.source.admission import StreamReader
from headgate.spark_udfs.source.data_source import HeadgateDataSource
from headgate.spark_udfs.source.stream_reader import LegacyStreamReader
from tests.spark.source.topics import rows_of


class Query:
    """Asks the reader what Spark would, in its order; offsets go through JSON as they do in a checkpoint."""

    def __init__(self, source: HeadgateDataSource, checkpoint: list[str] | None = None) -> None:
        self.schema = source.schema()
        self.checkpoint = [] if checkpoint is None else checkpoint
        self.reader = self._reader(source)
        self.start = json.loads(self.checkpoint[-1]) if self.checkpoint else self._kept(self.reader.initialOffset())

    def _reader(self, source: HeadgateDataSource) -> Any:
        reader = source.streamReader(self.schema)
        assert isinstance(reader, StreamReader)
        return reader

    def plan(self) -> dict[str, Any] | None:
        """The end of the next batch, written to the log; None where there is none."""
        end = self._kept(self.reader.latestOffset(self.start, self.reader.getDefaultReadLimit()))
        if json.dumps(end) == json.dumps(self.start):
            return None
        self.checkpoint.append(json.dumps(end))
        return end

    def run(self, end: dict[str, Any]) -> list[dict[str, Any]]:
        partitions = self.reader.partitions(self.start, end)
        reader = pickle.loads(pickle.dumps(self.reader))
        rows = [row for partition in pickle.loads(pickle.dumps(partitions)) for row in rows_of(reader.read(partition))]
        self.reader.commit(end)
        self.start = end
        return rows

    def batch(self) -> list[dict[str, Any]] | None:
        end = self.plan()
        return None if end is None else self.run(end)

    def values(self) -> list[str]:
        """Of all batches until there is nothing more, in order within each partition."""
        rows: list[dict[str, Any]] = []
        while (batch := self.batch()) is not None:
            rows += batch
        return [row["value"].decode() for row in sorted(rows, key=lambda row: (row["partition"], row["offset"]))]

    def stop(self) -> None:
        self.reader.stop()

    def _kept(self, offset: Any) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(json.dumps(offset))
        return kept


class LegacyQuery(Query):
    """As PySpark 4.0 and 4.1 ask: for the latest offset, and nothing else."""

    def _reader(self, source: HeadgateDataSource) -> Any:
        reader = source.streamReader(self.schema)
        assert isinstance(reader, StreamReader)
        return LegacyStreamReader(reader._options, reader._spec)

    def plan(self) -> dict[str, Any] | None:
        end = self._kept(self.reader.latestOffset())
        if json.dumps(end) == json.dumps(self.start):
            return None
        self.checkpoint.append(json.dumps(end))
        return end


KINDS = pytest.mark.parametrize("kind", [Query, LegacyQuery])


def names(first: int, last: int) -> list[str]:
    return [f"v{n}" for n in range(first, last)]
