"""What the two databases have in common, and where they differ: connecting, types, statements."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.spark_udfs.pipeline.model import Database

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


class Refusal(Exception):
    """A value or a row that the database does not take; the connection goes on."""


class Session(Protocol):
    """One connection inside one transaction."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of the answer, if there are any. `?` stands for a value."""
        ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """All or none of them. Raises `Refusal`, after which the transaction goes on as if nothing had been tried."""
        ...

    def columns(self, table: str) -> list[str]:
        """Of a table; none where there is no such table."""
        ...

    def stream(self, query: str, between: "Between | None", rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """A query's answer, so many rows at a time."""
        ...

    def next_end(self, query: str, column: str, after: object, rows: int) -> object:
        """The value of `column` in the last of the next so many rows after `after`; None where there are none."""
        ...

    def described(self, query: str) -> list[tuple[str, str]]:
        """The names of a query's columns, and their types in Spark's words."""
        ...


@dataclass(frozen=True, slots=True)
class Between:
    """The rows whose column lies past one value (any, where it is None) and not past another."""

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
    # Nulls come first in SQLite, and as many as are asked for would be taken for the end.
    past = f"{name} > ?" if has_start else f"{name} IS NOT NULL"
    next_rows = f"SELECT {name} FROM ({query}) AS q WHERE {past} ORDER BY {name} LIMIT {int(rows)}"
    return f"SELECT max({name}) FROM ({next_rows}) AS n"


def quoted(name: str) -> str:
    """`schema.table` as SQL takes it, whatever letters it has."""
    return ".".join(quoted_one(part) for part in name.split("."))


def quoted_one(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Dialect(Protocol):
    name: str

    def session(self, database: Database, *, reading: bool = False) -> AbstractContextManager[Session]:
        """Commits at its end, and rolls back where something was raised. Raises `PipelineError` where the database
        cannot be reached."""
        ...

    def type_of(self, kind: "DataType") -> str:
        """The type of a new column."""
        ...

    def value(self, value: object, kind: "DataType") -> object:
        """As the driver takes it. Raises `Refusal`."""
        ...

    def lock(self, what: str) -> str:
        """A statement that keeps another writer of the same thing out until the transaction ends; may be empty."""
        ...


def dialect_of(database: Database) -> Dialect:
    if database.kind == "sqlite":
        from headgate.spark_udfs.pipeline.databases.sqlite import SqliteDialect

        return SqliteDialect()
    from headgate.spark_udfs.pipeline.databases.postgresql import PostgresqlDialect

    return PostgresqlDialect()
