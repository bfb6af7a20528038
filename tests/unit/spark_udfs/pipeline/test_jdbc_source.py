"""The database source with SQLite."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.databases.dialect import Between
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.model import Database, Read
from headgate.spark_udfs.pipeline.sources.jdbc import JdbcSource
from headgate.spark_udfs.pipeline.sources.source import SourceContext
from tests.unit.spark_udfs.fake_spark import FakeSession, schema

pytestmark = pytest.mark.usefixtures("columns_without_session")


ROWS = schema(id="integer", name="string")


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


@pytest.fixture
def numbers(file: str) -> Database:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(at, f"n{at}") for at in range(1, 6)])
        connection.commit()
    return Database(f"sqlite:{file}")


def opened(source: JdbcSource) -> Any:
    spark: Any = FakeSession()
    pipeline: Any = None
    return source.open(SourceContext(spark, pipeline, None))


def polled(frames: Any, checkpoint: Checkpoint) -> list[tuple[int, str]]:
    return [(number, frame.plan) for number, frame in frames.poll(FakeSession(), checkpoint)]


@pytest.mark.usefixtures("ddl_without_session")
def test_new_rows_are_polled_by_an_incremental_column(numbers: Database, checkpoint: Checkpoint, file: str) -> None:
    source = JdbcSource("people", numbers, "SELECT * FROM t", "id", rows_per_batch=2)
    frames = opened(source)
    assert not frames.is_one_pass
    found = polled(frames, checkpoint)
    assert [number for number, _ in found] == [0, 1, 2]
    assert found[0][1] == (
        "createDataFrame([((1, 'n1'), None, None, None), ((2, 'n2'), None, None, None)], verifySchema=False)"
    )
    assert checkpoint.read_json("cursors", "people") == {"number": 3, "after": 5, "upto": None}
    assert polled(frames, checkpoint) == []
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO t VALUES (6, 'n6')")
        connection.commit()
    assert [number for number, _ in polled(frames, checkpoint)] == [3]


@pytest.mark.usefixtures("ddl_without_session")
def test_an_interrupted_batch_is_repeated_with_the_same_rows(
    numbers: Database, checkpoint: Checkpoint, file: str
) -> None:
    frames = opened(JdbcSource("people", numbers, "SELECT * FROM t", "id", rows_per_batch=10))
    batches = frames.poll(FakeSession(), checkpoint)
    number, first = next(batches)
    batches.close()
    assert checkpoint.read_json("cursors", "people") == {"number": 0, "after": None, "upto": 5}
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO t VALUES (6, 'n6')")
        connection.commit()
    repeated, second = next(frames.poll(FakeSession(), checkpoint))
    assert (repeated, second.plan) == (number, first.plan)


@pytest.mark.usefixtures("ddl_without_session")
def test_one_pass_reads_everything_in_batches(numbers: Database, checkpoint: Checkpoint) -> None:
    frames = opened(JdbcSource("people", numbers, "SELECT * FROM t", rows_per_batch=3))
    assert frames.is_one_pass
    assert [number for number, _ in polled(frames, checkpoint)] == [0, 1]
    assert [number for number, _ in polled(frames, checkpoint)] == [2, 3]


@pytest.mark.usefixtures("ddl_without_session")
def test_values_of_another_type_are_poison(numbers: Database, checkpoint: Checkpoint) -> None:
    source = JdbcSource("people", numbers, "SELECT name, id FROM t LIMIT 1", schema="n bigint, id bigint")
    frames = opened(source)
    ((_, plan),) = polled(frames, checkpoint)
    assert plan.startswith('createDataFrame([(None, \'INVALID_VALUE\', b\'["n1", "1"]\', "n: ')
    table = frames.open_table(checkpoint, 5.0)
    assert table.seconds == 5.0
    found = table.frame(FakeSession())
    assert found.plan.startswith("createDataFrame([]).union(createDataFrame([(None")
    assert found.plan.endswith(", verifySchema=False).where(reason IS NULL).select(value.*))")


@pytest.mark.usefixtures("ddl_without_session")
def test_a_missing_database_is_not_created(numbers: Database, tmp_path: Path) -> None:
    missing = JdbcSource("people", Database(f"sqlite:{tmp_path}/no.db"), "SELECT 1")
    for read in (lambda: opened(missing), lambda: list(missing.read_all())):
        with pytest.raises(PipelineError, match="there is no SQLite database"):
            read()
    assert not (tmp_path / "no.db").exists()


@pytest.mark.usefixtures("ddl_without_session")
def test_columns_of_a_query_are_checked(numbers: Database) -> None:
    with pytest.raises(PipelineError, match="there is no column ids; did you mean id") as caught:
        opened(JdbcSource("people", numbers, "SELECT * FROM t", "ids"))
    assert caught.value.why == "the query has id, name"
    with pytest.raises(PipelineError, match="schema has 1 columns, and the query has 2"):
        opened(JdbcSource("people", numbers, "SELECT * FROM t", schema="id bigint"))


@pytest.mark.usefixtures("ddl_without_session")
@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), Decimal("1.50"), "text", 7]
)
def test_a_position_of_any_type_is_stored(
    value: Any, numbers: Database, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Session:
        def next_end(self, query: str, column: str, after: object, rows: int) -> Any:
            asked.append(after)
            return value if after is None else None

        def stream(self, query: str, between: Between, rows: int) -> Iterator[Any]:
            yield [(1, "a")]

    @contextmanager
    def session(self: Any, database: Database, *, reading: bool = False) -> Iterator[Any]:
        assert reading
        yield Session()

    frames = opened(JdbcSource("people", numbers, "SELECT * FROM t", "id"))
    monkeypatch.setattr("headgate.spark_udfs.pipeline.databases.sqlite.SqliteDialect.session", session)
    assert len(polled(frames, checkpoint)) == 1
    assert polled(frames, checkpoint) == []
    assert asked == [None, value, value]


def source(text: str) -> Any:
    whole = f'checkpoint = "s"\n[sources.a]\ntype = "jdbc"\n{text}\n[sinks.c]\ntype = "console"\nfrom = "a"\n'
    return check(parse_toml(whole, "p.toml", Path("/pipelines"), {}), {}).sources["a"]


def test_a_database_source_is_read_from_the_file() -> None:
    found = source('url = "sqlite:a.db"\ntable = "t"\nincremental = "id"\nrows_per_batch = 7')
    assert (found.query, found.incremental, found.rows_per_batch) == ('SELECT * FROM "t"', "id", 7)
    assert found.describe(None)[1] == ("new rows by id",)
    assert found.locked_database_url is None
    one_pass = source('url = "sqlite:a.db"\nquery = "SELECT 1"')
    assert (one_pass.query, one_pass.rows_per_batch) == ("SELECT 1", 10_000)
    assert one_pass.describe(None)[1] == ("one pass over all rows at each start",)
    assert one_pass.locked_database_url == one_pass.database.url
    postgresql = source('url = "postgresql://db/shop"\nquery = "SELECT 1"')
    assert postgresql.locked_database_url is None
    table = source('url = "sqlite:a.db"\ntable = "t"\nread = "table"')
    assert table.read is Read.TABLE
    assert table.describe(None) == (f"{table.database.url}: {table.query}, as a table", ())
    assert table.locked_database_url is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('url = "sqlite:a.db"', "either table or query"),
        ('url = "sqlite:a.db"\ntable = "t"\nquery = "SELECT 1"', "either table or query"),
        ('url = "sqlite:a.db"\ntable = "t"\nread = "table"\nincremental = "id"', "has no effect on a table"),
        ('url = "sqlite:a.db"\ntable = "t"\nrows_per_batch = 1000001', "rows_per_batch"),
    ],
)
def test_mistakes_of_a_database_source_are_reported(text: str, message: str) -> None:
    with pytest.raises(PipelineMistakes, match=message):
        source(text)
