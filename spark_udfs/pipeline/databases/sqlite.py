"""SQLite: one file with one writer at a time."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headgate.spark_udfs.pipeline.databases.dialect import Between, Refusal, end_query, quoted_one
from headgate.spark_udfs.pipeline.databases.write_values import date_of, time_of
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

WAIT_SECONDS_MAX = 60.0
"""Timeout for the lock of another writer."""

_TYPES = {
    "boolean": "INTEGER",
    "byte": "INTEGER",
    "short": "INTEGER",
    "integer": "INTEGER",
    "long": "INTEGER",
    "float": "REAL",
    "double": "REAL",
    "binary": "BLOB",
}
"""All other types are TEXT: timestamps and dates in ISO 8601, decimals with all digits, nested values as JSON."""


class SqliteDialect:
    name = "SQLite"

    @contextmanager
    def session(self, database: Database, *, reading: bool = False) -> "Iterator[SqliteSession]":
        path = database.url.removeprefix("sqlite:")
        if reading and not Path(path).is_file():
            raise PipelineError(f"there is no SQLite database {path}")
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=WAIT_SECONDS_MAX, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise PipelineError(f"cannot open the SQLite database {path}", why=str(error)) from error
        with closing(connection):
            try:
                connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
                yield SqliteSession(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise PipelineError(f"the SQLite database {path} rejects the statement", why=str(error)) from error
                raise

    def type_of(self, kind: "DataType") -> str:
        return _TYPES.get(kind.typeName(), "TEXT")

    def value(self, value: object, kind: "DataType") -> object:
        if value is None:
            return None
        name = kind.typeName()
        if name in {"timestamp", "timestamp_ntz"}:
            # Microseconds and equal length, so that strings sort like timestamps.
            text = time_of(cast("int", value)).replace(tzinfo=None).isoformat(timespec="microseconds")
            return f"{text}Z" if name == "timestamp" else text
        if name == "date":
            return date_of(cast("int", value)).isoformat()
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, bytearray):
            return bytes(value)
        return value

    def lock(self, what: str) -> str:
        return ""


class SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, tuple(values)).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        self._connection.execute("SAVEPOINT headgate")
        try:
            self._connection.executemany(statement, rows)
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError) as error:
            self._connection.execute("ROLLBACK TO headgate")
            raise Refusal(str(error)) from error
        finally:
            self._connection.execute("RELEASE headgate")

    def columns(self, table: str) -> list[str]:
        return [str(row[0]) for row in self.execute("SELECT name FROM pragma_table_info(?)", [table])]

    def stream(self, query: str, between: Between | None, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        text, values = (query, ()) if between is None else (between.clause(query), between.values)
        cursor = self._connection.execute(text, tuple(values))
        while taken := cursor.fetchmany(rows):
            yield taken

    def next_end(self, query: str, column: str, after: object, rows: int) -> object:
        text = end_query(query, column, after is not None, rows)
        found = self.execute(text, [] if after is None else [after])
        return found[0][0] if found else None

    def described(self, query: str) -> list[tuple[str, str]]:
        # A view keeps the declared column types.
        self._connection.execute(f"CREATE TEMP VIEW headgate_described AS {query}")
        found = self.execute("SELECT name, type FROM pragma_table_info('headgate_described')")
        types = [(str(name), str(kind) or self._stored_type(str(name))) for name, kind in found]
        self._connection.execute("DROP VIEW headgate_described")
        return [(name, _read_type(kind)) for name, kind in types]

    def _stored_type(self, column: str) -> str:
        name = quoted_one(column)
        seen = self.execute(f"SELECT typeof({name}) FROM headgate_described WHERE {name} IS NOT NULL LIMIT 1")
        return str(seen[0][0]) if seen else "TEXT"


def _read_type(declared: str) -> str:
    """Apply SQLite's type affinity rules, and common names for types that SQLite does not have."""
    name = declared.upper()
    if "BOOL" in name:
        return "boolean"
    if "DATETIME" in name or "TIMESTAMP" in name:
        return "timestamp"
    if name == "DATE":
        return "date"
    if "INT" in name:
        return "bigint"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "string"
    if "BLOB" in name:
        return "binary"
    exact = re.fullmatch(r"(?:DECIMAL|NUMERIC)\((\d+)(?:,\s*(\d+))?\)", name)
    if exact is not None and int(exact[1]) <= 38:
        return f"decimal({exact[1]},{exact[2] or 0})"
    if any(part in name for part in ("REAL", "FLOA", "DOUB", "DECIMAL", "NUMERIC")):
        return "double"
    return "string"
