"""SQLite sessions, and conversion of database values."""

import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.spark_udfs.pipeline.databases.dialect import Between, Refusal
from headgate.spark_udfs.pipeline.databases.postgresql import PostgresqlDialect
from headgate.spark_udfs.pipeline.databases.read_values import spark_row
from headgate.spark_udfs.pipeline.databases.sqlite import SqliteDialect
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database, Mode
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcSink, JdbcWriter


@pytest.fixture
def database(tmp_path: Path) -> Database:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, d DECIMAL(9,2), at TIMESTAMP, x BLOB, ok BOOLEAN)")
        connection.executemany("INSERT INTO t (n) VALUES (?)", [(at,) for at in (1, 2, 3, 5, 8)])
        connection.commit()
    return Database(f"sqlite:{file}")


def test_a_session_commits_or_rolls_back(database: Database) -> None:
    with SqliteDialect().session(database) as session:
        session.execute("INSERT INTO t (n) VALUES (?)", [13])

    def half() -> None:
        with SqliteDialect().session(database) as session:
            session.execute("INSERT INTO t (n) VALUES (21)")
            session.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(PipelineError, match="no such table"):
        half()
    with SqliteDialect().session(database) as session:
        assert session.execute("SELECT max(n) FROM t") == [(13,)]


def test_refused_rows_do_not_abort_the_transaction(database: Database) -> None:
    with SqliteDialect().session(database) as session:
        session.execute_many("INSERT INTO t (n) VALUES (?)", [[100]])
        with pytest.raises(Refusal, match="UNIQUE"):
            session.execute_many("INSERT INTO t (n) VALUES (?)", [[101], [100]])
        with pytest.raises(Refusal):
            session.execute_many("INSERT INTO t (n) VALUES (?)", [[2**70]])
    with SqliteDialect().session(database) as session:
        assert session.execute("SELECT n FROM t WHERE n > 50") == [(100,)]


def test_rows_are_read_by_an_incremental_column(database: Database) -> None:
    query = "SELECT n, d FROM t"
    with SqliteDialect().session(database, reading=True) as session:
        assert session.next_end(query, "n", None, 2) == 2
        assert session.next_end(query, "n", 2, 2) == 5
        assert session.next_end(query, "n", 8, 2) is None
        found = [row[0] for piece in session.stream(query, Between("n", 2, 8), 2) for row in piece]
        assert found == [3, 5, 8]
        assert session.described("SELECT n, d, at, x, ok, n + 0.5 AS half, NULL AS unknown_ FROM t") == [
            ("n", "bigint"),
            ("d", "decimal(9,2)"),
            ("at", "timestamp"),
            ("x", "binary"),
            ("ok", "boolean"),
            ("half", "double"),
            ("unknown_", "string"),
        ]


def test_nulls_in_the_incremental_column_do_not_block_other_rows(database: Database) -> None:
    with SqliteDialect().session(database, reading=True) as session:
        assert session.next_end("SELECT nullif(n, 2) AS n FROM t", "n", None, 1) == 1


def test_an_upsert_refuses_a_null_key(database: Database) -> None:
    sink = JdbcSink("s", "rows", database, "u", mode=Mode.UPSERT, keys=("a",))
    writer = JdbcWriter(sink, lambda rows, batch: None)
    schema = StructType([StructField("a", IntegerType()), StructField("b", IntegerType())])
    assert writer._values(Row(a=1, b=None), schema) == [1, None]
    with pytest.raises(Refusal, match="the key a is null"):
        writer._values(Row(a=None, b=1), schema)


def test_reading_does_not_create_a_database(tmp_path: Path) -> None:
    file = tmp_path / "no.db"
    with pytest.raises(PipelineError, match="there is no SQLite database"):
        SqliteDialect().session(Database(f"sqlite:{file}"), reading=True).__enter__()
    assert not file.exists()


@pytest.mark.parametrize(
    ("value", "kind", "sqlite", "postgresql"),
    [
        (None, StringType(), None, None),
        (
            1_700_049_600_000_001,
            TimestampType(),
            "2023-11-15T12:00:00.000001Z",
            datetime(2023, 11, 15, 12, 0, 0, 1, UTC),
        ),
        (0, TimestampNTZType(), "1970-01-01T00:00:00.000000", datetime(1970, 1, 1)),
        (-1, DateType(), "1969-12-31", date(1969, 12, 31)),
        (Decimal("1E+3"), DecimalType(9, 2), "1000", Decimal("1E+3")),
        (bytearray(b"x"), BinaryType(), b"x", b"x"),
    ],
)
def test_values_are_written_without_loss(value: object, kind: DataType, sqlite: object, postgresql: object) -> None:
    assert SqliteDialect().value(value, kind) == sqlite
    assert PostgresqlDialect().value(value, kind) == postgresql


@pytest.mark.parametrize(("value", "kind"), [(2**62, TimestampType()), (2**31 - 1, DateType())])
def test_timestamps_out_of_range_are_refused(value: int, kind: DataType) -> None:
    for dialect in (SqliteDialect(), PostgresqlDialect()):
        with pytest.raises(Refusal, match="outside the years"):
            dialect.value(value, kind)


def test_postgresql_refuses_null_characters() -> None:
    with pytest.raises(Refusal, match=r"U\+0000"):
        PostgresqlDialect().value("a\0b", StringType())
    with pytest.raises(Refusal, match=r"U\+0000"):
        PostgresqlDialect().value('{"a":"\\u0000"}', StructType())
    assert SqliteDialect().value("a\0b", StringType()) == "a\0b"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (7, LongType(), 7),
        ("7", IntegerType(), 7),
        (7.0, IntegerType(), 7),
        ("2.5", DecimalType(5, 2), Decimal("2.50")),
        (1, BooleanType(), True),
        ("f", BooleanType(), False),
        ("1", BooleanType(), True),
        ("t", BooleanType(), True),
        ("TRUE", BooleanType(), True),
        ("true", BooleanType(), True),
        (0, BooleanType(), False),
        ("False", BooleanType(), False),
        ("2026-01-02T03:04:05Z", TimestampType(), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (0, TimestampType(), datetime(1970, 1, 1, tzinfo=UTC)),
        ("2026-01-02", DateType(), date(2026, 1, 2)),
        (b"\xc3\xa4", StringType(), "ä"),
        ("ä", BinaryType(), b"\xc3\xa4"),
        ("1e3", DoubleType(), 1000.0),
    ],
)
def test_values_are_read_with_the_column_type(value: object, kind: DataType, expected: object) -> None:
    assert spark_row([value], StructType().add("c", kind)) == ((expected,), None)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("seven", LongType()),
        (7.5, LongType()),
        (300, ByteType()),
        (2**63, LongType()),
        ("1234.5", DecimalType(5, 2)),
        ("NaN", DecimalType(5, 2)),
        ("perhaps", BooleanType()),
        ("yesterday", DateType()),
        ("noon", TimestampType()),
        (10**30, TimestampType()),
        (b"\xff", StringType()),
        (7, StructType()),
    ],
)
def test_values_that_do_not_fit_the_column_are_reported(value: object, kind: DataType) -> None:
    row, detail = spark_row([value], StructType().add("c", kind))
    assert row is None
    assert detail is not None
    assert detail.startswith("c: ")


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("DECIMAL(38)", "decimal(38,0)"),
        ("NUMERIC(38, 18)", "decimal(38,18)"),
        ("DECIMAL(39,2)", "double"),
        ("DECIMAL", "double"),
        ("DOUBLE PRECISION", "double"),
        ("VARCHAR(9)", "string"),
        ("DATE", "date"),
        ("DATETIME", "timestamp"),
        ("SMALLINT", "bigint"),
        ("JSON", "string"),
    ],
)
def test_declared_types_of_sqlite_become_spark_types(tmp_path: Path, declared: str, kind: str) -> None:
    file = tmp_path / "types.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE t (c {declared})")
    with SqliteDialect().session(Database(f"sqlite:{file}"), reading=True) as session:
        assert session.described("SELECT c FROM t") == [("c", kind)]
        assert session.columns("t") == ["c"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (datetime(2026, 1, 2, 3), TimestampType(), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), TimestampType(), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00:00", TimestampType(), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00:00+01:00", TimestampType(), datetime(2026, 1, 2, 2, tzinfo=UTC)),
        (1.5, TimestampType(), datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        (datetime(2026, 1, 2, 3), TimestampNTZType(), datetime(2026, 1, 2, 3)),
        ("2026-01-02T03:00:00", TimestampNTZType(), datetime(2026, 1, 2, 3)),
        (datetime(2026, 1, 2, 3), DateType(), date(2026, 1, 2)),
        (date(2026, 1, 2), DateType(), date(2026, 1, 2)),
        (None, DateType(), None),
    ],
)
def test_times_are_read_in_every_form(value: object, kind: DataType, expected: object) -> None:
    assert spark_row([value], StructType().add("c", kind)) == ((expected,), None)
