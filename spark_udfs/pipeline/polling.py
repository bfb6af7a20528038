"""A database read as a stream: in batches by a column that only grows, or in one pass.

Where a batch ends is written down before it is read. So a batch that is done again after a crash has the same rows (if
rows are only added), and sinks that know it leave it. Without such a column each run reads everything once; a pass that
was broken off is begun anew, so that is at least once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.databases.dialect import Between, dialect_of
from headgate.spark_udfs.pipeline.databases.incoming import incoming
from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean
from headgate.spark_udfs.pipeline.model import JdbcSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class DatabaseFrames:
    source: JdbcSource
    schema: "StructType"

    def frame(self, spark: "SparkSession", rows: Sequence[Sequence[object]]) -> "DataFrame":
        """As a topic's frame: the row under `value`, and a reason where the database holds what its type does not."""
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType

        outcome = StructType(
            [
                StructField("value", self.schema),
                StructField("reason", StringType()),
                StructField("raw", BinaryType()),
                StructField("detail", StringType()),
            ]
        )
        made = []
        for row in rows:
            value, detail = incoming(row, self.schema)
            raw = None if detail is None else json.dumps([str(each) for each in row]).encode()
            made.append((value, None if detail is None else "INVALID_VALUE", raw, detail))
        return spark.createDataFrame(made, outcome, verifySchema=False)

    def good(self, frame: "DataFrame") -> "DataFrame":
        return frame.where("reason IS NULL").select("value.*")

    def table(self, spark: "SparkSession") -> "DataFrame":
        """Everything that the query gives now."""
        frames = [self.good(self.frame(spark, piece)) for piece in self.pass_()]
        made = spark.createDataFrame([], self.schema)
        for frame in frames:
            made = made.union(frame)
        return made

    def pass_(self) -> Iterator[list[tuple[Any, ...]]]:
        with dialect_of(self.source.database).session(self.source.database, reading=True) as session:
            yield from session.stream(self.source.query, None, self.source.rows_per_batch)


def database_frames(source: JdbcSource) -> DatabaseFrames:
    """Asks the database for the columns. Raises `PipelineError`."""
    from headgate.spark_udfs.pipeline.sources import declared_schema

    with dialect_of(source.database).session(source.database, reading=True) as session:
        described = session.described(source.query)
    if source.incremental is not None and source.incremental not in [name for name, _ in described]:
        names = [name for name, _ in described]
        raise PipelineError(
            f"source {source.name}: there is no column {source.incremental}{did_you_mean(source.incremental, names)}",
            why=f"the query gives {', '.join(names)}",
        )
    text = source.schema or ", ".join(f"`{name}` {kind}" for name, kind in described)
    schema = declared_schema(text, source.name)
    if len(schema.fields) != len(described):
        raise PipelineError(
            f"source {source.name}: schema has {len(schema.fields)} columns, and the query gives {len(described)}"
        )
    return DatabaseFrames(source, schema)


class Cursor:
    """How far a database was read: `{"number": 3, "after": 700, "upto": 800}` while batch 3 is under way."""

    def __init__(self, checkpoint: Checkpoint, source: JdbcSource) -> None:
        self._checkpoint = checkpoint
        self._source = source
        kept = checkpoint.read_json("cursors", source.name) or {}
        self.number = int(kept.get("number", 0))
        self._after = _revived(kept.get("after"))
        self._upto = _revived(kept.get("upto"))

    def batches(self) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """Numbered batches; each counts as done when the next one is asked for."""
        if self._source.incremental is None:
            yield from self._pass()
            return
        while True:
            rows = self._next()
            if rows is None:
                return
            yield self.number, rows
            self.number, self._after, self._upto = self.number + 1, self._upto, None
            self._keep()

    def _pass(self) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        for piece in DatabaseFrames(self._source, None).pass_():  # type: ignore[arg-type]  # the columns do not matter
            yield self.number, piece
            self.number += 1
            self._keep()

    def _next(self) -> list[tuple[Any, ...]] | None:
        source = self._source
        assert source.incremental is not None
        with dialect_of(source.database).session(source.database, reading=True) as session:
            if self._upto is None:
                self._upto = session.next_end(source.query, source.incremental, self._after, source.rows_per_batch)
                if self._upto is None:
                    return None
                self._keep()
            between = Between(source.incremental, self._after, self._upto)
            return [row for piece in session.stream(source.query, between, source.rows_per_batch) for row in piece]

    def _keep(self) -> None:
        state = {"number": self.number, "after": _plain(self._after), "upto": _plain(self._upto)}
        self._checkpoint.write_json("cursors", self._source.name, state)


def _plain(value: object) -> object:
    """As JSON, with the type where JSON has none."""
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return value


def _revived(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    kind, text = next(iter(value.items()))
    if kind == "datetime":
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if kind == "date" else Decimal(text)
