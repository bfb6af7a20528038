"""A table of a database, exactly once: a batch's rows and its mark are written in one transaction.

The mark is a row of the table `headgate_batches`: the last batch of each sink and checkpoint. A batch that is done
again finds it and leaves the table alone. Rows go through the driver, in pieces: an executor cannot share its
transaction. `upsert` puts a row in the place of the one with the same keys; of several in one batch the last one stays,
in the order of the topic's partition. A row that the table refuses (a constraint, a value that its types cannot hold)
does not stop the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.databases.dialect import Dialect, Refusal, Session, dialect_of, quoted, quoted_one
from headgate.spark_udfs.pipeline.databases.values import leaving
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import JdbcSink, Mode
from headgate.spark_udfs.pipeline.sinks.writer import EXACTLY_ONCE, REFUSED_AT_ONCE_MAX, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

PIECE_ROWS = 1_000
"""Rows of one statement, and of what is tried again one by one when the database refuses some of them."""

LEDGER = "headgate_batches"
_LEDGER_COLUMNS = (
    "identity TEXT, query TEXT, sink TEXT, pipeline TEXT, batch BIGINT, PRIMARY KEY (identity, query, sink)"
)


class JdbcWriter:
    guarantee = EXACTLY_ONCE

    def __init__(self, sink: JdbcSink, refused: RefusedRows) -> None:
        self._sink = sink
        self._refused = refused
        self._dialect: Dialect = dialect_of(sink.database)

    def check(self, schema: "StructType") -> None:
        if not schema.names:
            raise PipelineError(f"sink {self._sink.name}: the rows have no columns, and a table needs one")
        for key in self._sink.keys:
            if key not in schema.names:
                raise PipelineError(
                    f"sink {self._sink.name}: there is no column {key}", why=f"the rows have {', '.join(schema.names)}"
                )
        with self._dialect.session(self._sink.database) as session:
            session.execute(f"CREATE TABLE IF NOT EXISTS {LEDGER} ({_LEDGER_COLUMNS})")
            self._prepare(session, schema)

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        try:
            return self._attempt(rows, batch, put_up_with_refusals=False)
        except _Refused as refused:
            # The dead letters may be in the same database, and a transaction of theirs would wait for this one; so
            # this one is undone, they are written, and it is done again without them.
            self._refused(refused.rows, batch)
        return self._attempt(rows, batch, put_up_with_refusals=True)

    def _attempt(self, rows: "DataFrame", batch: "BatchId", *, put_up_with_refusals: bool) -> Written:
        with self._dialect.session(self._sink.database) as session:
            lock = self._dialect.lock(f"{batch.identity}/{batch.query}/{self._sink.name}")
            if lock:
                session.execute(lock)
            mark = [batch.identity, batch.query, self._sink.name]
            done = session.execute(f"SELECT batch FROM {LEDGER} WHERE identity = ? AND query = ? AND sink = ?", mark)
            if done and int(done[0][0]) >= batch.number:
                return Written(0, repeated=True)
            self._prepare(session, rows.schema)
            if self._sink.mode is Mode.REPLACE:
                session.execute(f"DELETE FROM {self._table}")
            count, refused = self._insert(session, rows)
            if refused and not put_up_with_refusals:
                raise _Refused(refused)
            session.execute(
                f"INSERT INTO {LEDGER} (identity, query, sink, pipeline, batch) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (identity, query, sink) DO UPDATE SET batch = excluded.batch",
                [*mark, batch.pipeline, batch.number],
            )
            return Written(count, len(refused))

    def _insert(self, session: Session, rows: "DataFrame") -> tuple[int, list[tuple[str, str]]]:
        """How many went in, and those that did not."""
        statement = self._statement(rows.schema.names)
        count = 0
        refused: list[tuple[str, str]] = []
        for piece in _pieces(leaving(rows).toLocalIterator(prefetchPartitions=True)):
            ready: list[tuple[Row, list[object]]] = []
            for row in piece:
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
            if len(refused) > REFUSED_AT_ONCE_MAX:
                break
        return count, refused

    def _values(self, row: "Row", schema: "StructType") -> list[object]:
        for key in self._sink.keys:
            if row[key] is None:
                # To a database no null is the same as another: the row would be there again with every batch.
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
        """The table with the columns that the rows have. Raises `PipelineError` where that is not allowed."""
        there = session.columns(self._sink.table)
        if not there:
            self._create(session, schema)
            return
        known = {name.lower() for name in there}
        for field in schema.fields:
            if field.name.lower() in known:
                continue
            if not self._sink.evolve:
                raise PipelineError(
                    f"sink {self._sink.name}: the table {self._sink.table} has no column {field.name}",
                    why=f"it has {', '.join(there)}",
                    advice="add it, leave the field out in a transform, or set evolve = true to have it added",
                )
            kind = self._dialect.type_of(field.dataType)
            session.execute(f"ALTER TABLE {self._table} ADD COLUMN {quoted_one(field.name)} {kind}")

    def _create(self, session: Session, schema: "StructType") -> None:
        if not self._sink.create:
            raise PipelineError(
                f"sink {self._sink.name}: there is no table {self._sink.table}",
                advice="make it, or set create = true to have it made",
            )
        parts = [f"{quoted_one(field.name)} {self._dialect.type_of(field.dataType)}" for field in schema.fields]
        if self._sink.keys:
            parts.append(f"PRIMARY KEY ({', '.join(quoted_one(key) for key in self._sink.keys)})")
        session.execute(f"CREATE TABLE {self._table} ({', '.join(parts)})")


class _Refused(Exception):
    """Undoes the transaction."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


def _pieces(rows: "Iterable[Row]") -> "Iterator[list[Row]]":
    piece: list[Row] = []
    for row in rows:
        piece.append(row)
        if len(piece) == PIECE_ROWS:
            yield piece
            piece = []
    if piece:
        yield piece


def _as_json(row: "Row") -> str:
    import json

    return json.dumps(row.asDict(), default=lambda value: value.hex() if hasattr(value, "hex") else str(value))
