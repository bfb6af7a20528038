"""Database source: polled in batches by an incremental column, or read in one pass.

The end of a batch is stored before the batch is read. A repeated batch therefore has the same rows (if rows are only
added), and sinks can detect it. Without an incremental column each start reads everything once. An interrupted pass
starts over, so it is at least once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.databases.dialect import Between, dialect_of, quoted
from headgate.spark_udfs.pipeline.databases.read_values import spark_row
from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean
from headgate.spark_udfs.pipeline.model import PIPELINE_POLICIES, Database, Read
from headgate.spark_udfs.pipeline.sources.source import (
    PolledFrames,
    Source,
    SourceContext,
    SourceDefaults,
    SourceFrames,
    parse_ddl,
)
from headgate.spark_udfs.pipeline.tables import CachedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

ROWS_PER_BATCH_DEFAULT = 10_000
ROWS_PER_BATCH_MAX = 1_000_000

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class JdbcSource(Source):
    database: Database
    query: str
    incremental: str | None = None
    """An increasing column: rows above the last value are new. None reads everything in one pass."""
    rows_per_batch: int = ROWS_PER_BATCH_DEFAULT
    schema: str | None = None
    """Columns in Spark's DDL. By default the columns that the database declares."""

    @classmethod
    def from_table(cls, table: "TableReader", name: str, defaults: SourceDefaults) -> "JdbcSource":
        database = fields.database(table)
        table_name, query = table.text("table"), table.text("query")
        if (table_name is None) == (query is None):
            table.wrong("table", "either table or query is required, not both")
        if table_name is not None:
            query = f"SELECT * FROM {quoted(table_name)}"
        read = table.choice("read", Read, Read.STREAM)
        incremental = table.text("incremental")
        if incremental is not None and read is Read.TABLE:
            table.wrong("incremental", "has no effect on a table, which is read as a whole")
        return cls(
            name,
            database=database,
            query=query or "",
            read=read,
            incremental=incremental,
            rows_per_batch=table.number("rows_per_batch", most=ROWS_PER_BATCH_MAX) or ROWS_PER_BATCH_DEFAULT,
            schema=table.text("schema"),
            watermark=fields.watermark(table),
            on_poison=table.choice("on_poison", PIPELINE_POLICIES, defaults.on_poison),
        )

    def describe(self, frames: SourceFrames) -> tuple[str, tuple[str, ...]]:
        summary = f"{self.database.url}: {self.query}"
        if self.read is Read.TABLE:
            return f"{summary}, as a table", ()
        column = self.incremental
        return summary, (f"new rows by {column}" if column else "one pass over all rows at each start",)

    def open(self, context: SourceContext) -> "DatabaseFrames":
        """Read the columns from the database."""
        with dialect_of(self.database).session(self.database, reading=True) as session:
            described = session.described(self.query)
        names = [name for name, _ in described]
        if self.incremental is not None and self.incremental not in names:
            raise PipelineError(
                f"source {self.name}: there is no column {self.incremental}{did_you_mean(self.incremental, names)}",
                why=f"the query has {', '.join(names)}",
            )
        schema = parse_ddl(self.schema or ", ".join(f"`{name}` {kind}" for name, kind in described), self.name)
        if len(schema.fields) != len(described):
            raise PipelineError(
                f"source {self.name}: schema has {len(schema.fields)} columns, and the query has {len(described)}"
            )
        return DatabaseFrames(self, schema)

    @property
    def locked_database_url(self) -> str | None:
        is_pass = self.read is Read.STREAM and self.incremental is None
        return self.database.url if is_pass and self.database.kind == "sqlite" else None

    def read_all(self) -> Iterator[Rows]:
        with dialect_of(self.database).session(self.database, reading=True) as session:
            yield from session.stream(self.query, None, self.rows_per_batch)


class DatabaseFrames(PolledFrames):
    def __init__(self, source: JdbcSource, schema: "StructType") -> None:
        self._source = source
        self.schema = schema
        self.is_one_pass = source.incremental is None

    def poll(self, spark: "SparkSession", checkpoint: Checkpoint) -> "Iterator[tuple[int, DataFrame]]":
        for number, rows in Cursor(checkpoint, self._source).batches():
            yield number, self._outcome(spark, rows)

    def open_table(self, checkpoint: Checkpoint, refresh_seconds: float) -> CachedTable:
        return CachedTable(self._rows, refresh_seconds)

    def _rows(self, spark: "SparkSession") -> "DataFrame":
        """The current result of the query."""
        result = spark.createDataFrame([], self.schema)
        for rows in self._source.read_all():
            result = result.union(self.good(self._outcome(spark, rows)))
        return result

    def _outcome(self, spark: "SparkSession", rows: Sequence[Sequence[object]]) -> "DataFrame":
        """The columns of a decoded topic: the row in `value`, and a reason if a value does not fit its type."""
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType

        outcome = StructType(
            [
                StructField("value", self.schema),
                StructField("reason", StringType()),
                StructField("raw", BinaryType()),
                StructField("detail", StringType()),
            ]
        )
        converted = []
        for row in rows:
            value, detail = spark_row(row, self.schema)
            raw = None if detail is None else json.dumps([str(each) for each in row]).encode()
            converted.append((value, None if detail is None else "INVALID_VALUE", raw, detail))
        return spark.createDataFrame(converted, outcome, verifySchema=False)

    def good(self, frame: "DataFrame") -> "DataFrame":
        return frame.where("reason IS NULL").select("value.*")


class Cursor:
    """The position in a database: `{"number": 3, "after": 700, "upto": 800}` while batch 3 is in progress."""

    def __init__(self, checkpoint: Checkpoint, source: JdbcSource) -> None:
        self._checkpoint = checkpoint
        self._source = source
        stored = checkpoint.read_json("cursors", source.name) or {}
        self.number = int(stored.get("number", 0))
        self._after = _from_json(stored.get("after"))
        self._upto = _from_json(stored.get("upto"))

    def batches(self) -> Iterator[tuple[int, Rows]]:
        """Numbered batches. A batch is done when the next one is requested."""
        if self._source.incremental is None:
            for rows in self._source.read_all():
                yield self.number, rows
                self.number += 1
                self._store()
            return
        while (next_rows := self._next(self._source.incremental)) is not None:
            yield self.number, next_rows
            self.number, self._after, self._upto = self.number + 1, self._upto, None
            self._store()

    def _next(self, column: str) -> Rows | None:
        source = self._source
        with dialect_of(source.database).session(source.database, reading=True) as session:
            if self._upto is None:
                self._upto = session.next_end(source.query, column, self._after, source.rows_per_batch)
                if self._upto is None:
                    return None
                self._store()
            between = Between(column, self._after, self._upto)
            return [row for rows in session.stream(source.query, between, source.rows_per_batch) for row in rows]

    def _store(self) -> None:
        state = {"number": self.number, "after": _to_json(self._after), "upto": _to_json(self._upto)}
        self._checkpoint.write_json("cursors", self._source.name, state)


def _to_json(value: object) -> object:
    """The value, with its type if JSON has no such type."""
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return value


def _from_json(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    kind, text = next(iter(value.items()))
    if kind == "datetime":
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if kind == "date" else Decimal(text)
