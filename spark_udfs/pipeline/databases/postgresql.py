"""PostgreSQL with psycopg 3."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from headgate.spark_udfs.pipeline.databases.dialect import Between, Refusal, end_query, quoted
from headgate.spark_udfs.pipeline.databases.write_values import date_of, time_of
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql.types import DataType

CONNECT_SECONDS_MAX = 15

_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "SMALLINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "decimal": "NUMERIC",
    "binary": "BYTEA",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "struct": "JSONB",
    "array": "JSONB",
    "map": "JSONB",
}

_READ_TYPES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "binary",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
}
"""All other types are read as strings."""


class PostgresqlDialect:
    name = "PostgreSQL"

    @contextmanager
    def session(self, database: Database, *, reading: bool = False) -> "Iterator[PostgresqlSession]":
        try:
            import psycopg
        except ImportError as error:
            raise PipelineError(
                "PostgreSQL needs psycopg", why=str(error), advice="pip install 'headgate[postgresql]'"
            ) from error
        try:
            connection = psycopg.connect(
                database.url,
                user=database.user,
                password=database.password,
                connect_timeout=CONNECT_SECONDS_MAX,
                application_name="headgate",
            )
        except psycopg.OperationalError as error:
            raise PipelineError(
                f"PostgreSQL at {database.url} is not reachable", why=str(error).strip(), unreachable=True
            ) from error
        except psycopg.Error as error:
            raise PipelineError(
                f"PostgreSQL rejects the connection to {database.url}", why=str(error).strip()
            ) from error
        try:
            # The context manager commits, or rolls back after an exception, and closes.
            with connection:
                yield PostgresqlSession(connection)
        except psycopg.Error as error:
            raise PipelineError(
                f"PostgreSQL at {database.url} rejects the statement", why=str(error).strip()
            ) from error

    def type_of(self, kind: "DataType") -> str:
        return _TYPES.get(kind.typeName(), "TEXT")

    def value(self, value: object, kind: "DataType") -> object:
        if value is None:
            return None
        name = kind.typeName()
        if name == "timestamp":
            return time_of(cast("int", value))
        if name == "timestamp_ntz":
            return time_of(cast("int", value)).replace(tzinfo=None)
        if name == "date":
            return date_of(cast("int", value))
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, str) and "\0" in value:
            raise Refusal("a PostgreSQL string cannot contain the character U+0000")
        if isinstance(value, str) and "\\u0000" in value and name in {"struct", "array", "map"}:
            raise Refusal("PostgreSQL JSON cannot contain the character U+0000")
        return value

    def lock(self, what: str) -> str:
        # The key is a hash. Two names with the same hash only wait for each other.
        return f"SELECT pg_advisory_xact_lock(hashtextextended('{what}', 0))"


class PostgresqlSession:
    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_marked(statement), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        import psycopg

        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.executemany(_marked(statement), rows)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise Refusal(str(error).strip()) from error

    def columns(self, table: str) -> list[str]:
        """The columns of the table that the name resolves to on the search path."""
        query = (
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped "
            "ORDER BY attnum"
        )
        return [str(row[0]) for row in self.execute(query, [quoted(table)])]

    def stream(self, query: str, between: Between | None, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        text, values = query, cast("tuple[object, ...]", ())
        if between is not None:
            text, values = _marked(between.clause("PLACE")).replace("PLACE", query.replace("%", "%%")), between.values
        # A server-side cursor: neither side keeps the whole result in memory.
        with self._connection.cursor("headgate") as cursor:
            cursor.execute(text, values or None)
            while taken := cursor.fetchmany(rows):
                yield taken

    def next_end(self, query: str, column: str, after: object, rows: int) -> object:
        text = end_query("PLACE", column, after is not None, rows)
        marked = _marked(text).replace("PLACE", query.replace("%", "%%"))
        found = self._connection.execute(marked, [after] if after is not None else None).fetchone()
        return None if found is None else found[0]

    def described(self, query: str) -> list[tuple[str, str]]:
        cursor = self._connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0")
        return [(each.name, _read_type(each)) for each in cursor.description or ()]


def _read_type(column: "psycopg.Column") -> str:
    if column.type_display.startswith("numeric"):
        # A numeric without precision is unbounded. Spark's longest decimal is the closest type.
        return f"decimal({min(column.precision or 38, 38)},{column.scale if column.precision else 18})"
    return _READ_TYPES.get(column.type_display.partition("(")[0], "string")


def _marked(statement: str) -> str:
    """Convert `?` to psycopg placeholders. Queries from a pipeline file have no placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")
