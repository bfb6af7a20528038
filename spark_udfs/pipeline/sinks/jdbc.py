"""Database sink, exactly once: one transaction contains the rows of a batch and its batch number.

The table `headgate_batches` stores the last batch of each sink and checkpoint. A repeated batch finds its number and
writes nothing. All rows pass through the driver, because executors cannot share its transaction. `upsert` replaces the
row with the same keys; the last of several rows in one batch wins, in the order of the topic partition. A row that the
database refuses (a constraint, a value outside its type) does not block the others.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.databases.dialect import Dialect, Refusal, Session, dialect_of, quoted, quoted_one
from headgate.spark_udfs.pipeline.databases.write_values import exact_columns
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database, Mode
from headgate.spark_udfs.pipeline.sinks.sink import DEAD_LETTERS, DeadLetterSink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, REFUSED_ROWS_MAX, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

CHUNK_ROWS = 1_000
"""Rows of one statement. If the database refuses some of them, they are retried one by one."""

BATCHES_TABLE = "headgate_batches"
_BATCHES_COLUMNS = (
    "identity TEXT, query TEXT, sink TEXT, pipeline TEXT, batch BIGINT, PRIMARY KEY (identity, query, sink)"
)


@dataclass(frozen=True, slots=True)
class JdbcSink(DeadLetterSink):
    database: Database
    table: str
    create: bool = True
    evolve: bool = False
    mode: Mode = field(default=Mode.APPEND, kw_only=True)

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "JdbcSink":
        keys = table.texts("keys")
        return cls(
            name,
            input_,
            database=fields.database(table),
            table=table.required("table", "the table to write to"),
            mode=fields.write_mode(table, tuple(Mode), keys),
            keys=keys,
            create=table.boolean("create", True),
            evolve=table.boolean("evolve", False),
            on_refused=fields.on_refused(table),
        )

    @classmethod
    def for_dead_letters(cls, table: "TableReader") -> "JdbcSink":
        return cls(DEAD_LETTERS, "", fields.database(table), table.text("table") or DEAD_LETTERS)

    def describe(self) -> tuple[str, str]:
        return f"{self.database.url} table {self.table}, {self.mode_text()}", EXACTLY_ONCE

    def open(self, context: SinkContext) -> "JdbcWriter":
        return JdbcWriter(self, context.refused_rows(self))

    @property
    def database_url(self) -> str | None:
        return self.database.url


class JdbcWriter:
    def __init__(self, sink: JdbcSink, refused: RefusedRows) -> None:
        self._sink = sink
        self._refused = refused
        self._dialect: Dialect = dialect_of(sink.database)

    def check(self, schema: "StructType") -> None:
        if not schema.names:
            raise PipelineError(f"sink {self._sink.name}: the rows have no columns, and a table needs at least one")
        for key in self._sink.keys:
            if key not in schema.names:
                raise PipelineError(
                    f"sink {self._sink.name}: there is no column {key}", why=f"the rows have {', '.join(schema.names)}"
                )
        with self._dialect.session(self._sink.database) as session:
            session.execute(f"CREATE TABLE IF NOT EXISTS {BATCHES_TABLE} ({_BATCHES_COLUMNS})")
            self._prepare(session, schema)

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        try:
            return self._attempt(rows, batch, skip_refused=False)
        except _Refused as refused:
            # The dead letters may be in the same database, where their transaction would wait for this one. So this
            # transaction is rolled back, the dead letters are written, and the batch is written without those rows.
            self._refused(refused.rows, batch)
        return self._attempt(rows, batch, skip_refused=True)

    def _attempt(self, rows: "DataFrame", batch: "BatchId", *, skip_refused: bool) -> Written:
        with self._dialect.session(self._sink.database) as session:
            lock = self._dialect.lock(f"{batch.identity}/{batch.query}/{self._sink.name}")
            if lock:
                session.execute(lock)
            key = [batch.identity, batch.query, self._sink.name]
            done = session.execute(
                f"SELECT batch FROM {BATCHES_TABLE} WHERE identity = ? AND query = ? AND sink = ?", key
            )
            if done and int(done[0][0]) >= batch.number:
                return Written(0, repeated=True)
            self._prepare(session, rows.schema)
            if self._sink.mode is Mode.REPLACE:
                session.execute(f"DELETE FROM {self._table}")
            count, refused = self._insert(session, rows)
            if refused and not skip_refused:
                raise _Refused(refused)
            session.execute(
                f"INSERT INTO {BATCHES_TABLE} (identity, query, sink, pipeline, batch) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (identity, query, sink) DO UPDATE SET batch = excluded.batch",
                [*key, batch.pipeline, batch.number],
            )
            return Written(count, len(refused))

    def _insert(self, session: Session, rows: "DataFrame") -> tuple[int, list[tuple[str, str]]]:
        """The number of inserted rows, and the refused rows."""
        statement = self._statement(rows.schema.names)
        count = 0
        refused: list[tuple[str, str]] = []
        for chunk in _chunks(exact_columns(rows).toLocalIterator(prefetchPartitions=True)):
            ready: list[tuple[Row, list[object]]] = []
            for row in chunk:
                try:
                    ready.append((row, self._values(row, rows.schema)))
                except Refusal as refusal:
                    refused.append((_as_json(row), str(refusal)))
            try:
                session.execute_many(statement, [values for _, values in ready])
                count += len(ready)
            except Refusal:
                for row, values in ready:
                    try:
                        session.execute_many(statement, [values])
                        count += 1
                    except Refusal as refusal:
                        refused.append((_as_json(row), str(refusal)))
            if len(refused) > REFUSED_ROWS_MAX:
                break
        return count, refused

    def _values(self, row: "Row", schema: "StructType") -> list[object]:
        for key in self._sink.keys:
            if row[key] is None:
                # Nulls are never equal in SQL: every batch would insert the row again.
                raise Refusal(f"the key {key} is null")
        return [self._dialect.value(value, field.dataType) for value, field in zip(row, schema.fields, strict=True)]

    @property
    def _table(self) -> str:
        return quoted(self._sink.table)

    def _statement(self, names: Sequence[str]) -> str:
        listed = ", ".join(quoted_one(name) for name in names)
        marks = ", ".join("?" for _ in names)
        statement = f"INSERT INTO {self._table} ({listed}) VALUES ({marks})"
        if self._sink.mode is not Mode.UPSERT:
            return statement
        keys = ", ".join(quoted_one(key) for key in self._sink.keys)
        others = [quoted_one(name) for name in names if name not in self._sink.keys]
        if not others:
            return f"{statement} ON CONFLICT ({keys}) DO NOTHING"
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f"{statement} ON CONFLICT ({keys}) DO UPDATE SET {changes}"

    def _prepare(self, session: Session, schema: "StructType") -> None:
        """Create the table or add missing columns. Raises `PipelineError` if that is not allowed."""
        existing = session.columns(self._sink.table)
        if not existing:
            self._create(session, schema)
            return
        known = {name.lower() for name in existing}
        for column in schema.fields:
            if column.name.lower() in known:
                continue
            if not self._sink.evolve:
                raise PipelineError(
                    f"sink {self._sink.name}: the table {self._sink.table} has no column {column.name}",
                    why=f"it has {', '.join(existing)}",
                    advice="add the column, remove the field in a transform, or set evolve = true",
                )
            kind = self._dialect.type_of(column.dataType)
            session.execute(f"ALTER TABLE {self._table} ADD COLUMN {quoted_one(column.name)} {kind}")

    def _create(self, session: Session, schema: "StructType") -> None:
        if not self._sink.create:
            raise PipelineError(
                f"sink {self._sink.name}: there is no table {self._sink.table}",
                advice="create the table, or set create = true to create it automatically",
            )
        parts = [f"{quoted_one(field.name)} {self._dialect.type_of(field.dataType)}" for field in schema.fields]
        if self._sink.keys:
            parts.append(f"PRIMARY KEY ({', '.join(quoted_one(key) for key in self._sink.keys)})")
        session.execute(f"CREATE TABLE {self._table} ({', '.join(parts)})")


class _Refused(Exception):
    """Raised inside the transaction to roll it back."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


def _chunks(rows: "Iterable[Row]") -> "Iterator[list[Row]]":
    iterator = iter(rows)
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        yield chunk


def _as_json(row: "Row") -> str:
    return json.dumps(row.asDict(), default=lambda value: value.hex() if hasattr(value, "hex") else str(value))
