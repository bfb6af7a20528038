"""The interface of both databases: sessions, column types, statements."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.spark_udfs.pipeline.model import Database

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


class Refusal(Exception):
    """The database refuses a value or a row. The connection stays usable."""


class Session(Protocol):
    """One connection inside one transaction."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows. `?` is the placeholder of a value."""
        ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Insert all rows or none. After a `Refusal` the transaction continues without them."""
        ...

    def columns(self, table: str) -> list[str]:
        """The columns of a table; empty if there is no such table."""
        ...

    def stream(self, query: str, between: "Between | None", rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """The result of a query, in lists of up to `rows` rows."""
        ...

    def next_end(self, query: str, column: str, after: object, rows: int) -> object:
        """The value of `column` in the last of the next `rows` rows after `after`; None if there are none."""
        ...

    def described(self, query: str) -> list[tuple[str, str]]:
        """The column names of a query, and their Spark types."""
        ...


@dataclass(frozen=True, slots=True)
class Between:
    """The rows with `after` < column <= `upto`. `after` is None at the start."""

    column: str
    after: object
    upto: object

    def clause(self, query: str) -> str:
        name = quoted_one(self.column)
        past = f"{name} > ? AND " if self.after is not None else ""
        return f"SELECT * FROM ({query}) AS q WHERE {past}{name} <= ? ORDER BY {name}"

    @property
    def values(self) -> tuple[object, ...]:
        return (self.upto,) if self.after is None else (self.after, self.upto)


def end_query(query: str, column: str, has_start: bool, rows: int) -> str:
    name = quoted_one(column)
    # SQLite sorts nulls first. A batch of nulls only would look like the end.
    past = f"{name} > ?" if has_start else f"{name} IS NOT NULL"
    next_rows = f"SELECT {name} FROM ({query}) AS q WHERE {past} ORDER BY {name} LIMIT {int(rows)}"
    return f"SELECT max({name}) FROM ({next_rows}) AS n"


def quoted(name: str) -> str:
    """`schema.table` as a quoted SQL identifier."""
    return ".".join(quoted_one(part) for part in name.split("."))


def quoted_one(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Dialect(Protocol):
    name: str

    def session(self, database: Database, *, reading: bool = False) -> AbstractContextManager[Session]:
        """Open a transaction; commit at the end, roll back after an exception. Raises `PipelineError` if the database
        is not reachable."""
        ...

    def type_of(self, kind: "DataType") -> str:
        """The SQL type of a new column."""
        ...

    def value(self, value: object, kind: "DataType") -> object:
        """Convert a value for the database driver. Raises `Refusal`."""
        ...

    def lock(self, what: str) -> str:
        """A statement that locks out other writers of `what` until the transaction ends; may be empty."""
        ...


def dialect_of(database: Database) -> Dialect:
    if database.kind == "sqlite":
        from headgate.spark_udfs.pipeline.databases.sqlite import SqliteDialect

        return SqliteDialect()
    from headgate.spark_udfs.pipeline.databases.postgresql import PostgresqlDialect

    return PostgresqlDialect()
