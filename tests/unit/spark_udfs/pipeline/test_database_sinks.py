"""The database sink and source with SQLite, and PostgreSQL sessions with a fake connection."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pyspark.sql import Row
from pyspark.sql.types import CharType, DayTimeIntervalType, StructType, VarcharType

from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.databases.dialect import Between, Refusal
from headgate.spark_udfs.pipeline.databases.postgresql import PostgresqlDialect, PostgresqlSession
from headgate.spark_udfs.pipeline.databases.write_values import exact_columns
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.model import Database, Mode, Read
from headgate.spark_udfs.pipeline.sinks import jdbc
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcSink, JdbcWriter
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.sources.jdbc import JdbcSource
from headgate.spark_udfs.pipeline.sources.source import SourceContext
from tests.unit.spark_udfs.fake_spark import FakeHadoop, FakeSession, from_ddl, schema

pytestmark = pytest.mark.usefixtures("columns_without_session")

ROWS = schema(id="integer", name="string")


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


def rows_in(file: str, table: str = "t") -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


class Writing:
    """Writes batches of rows with one sink, and collects refused rows."""

    def __init__(self, file: str, columns: StructType = ROWS, **options: Any) -> None:
        self.sink = JdbcSink("db", "orders", Database(f"sqlite:{file}"), "t", **options)
        self.refused: list[Any] = []
        self.writer = JdbcWriter(self.sink, lambda rows, batch: self.refused.append((rows, batch.number)))
        self.columns = columns
        self.session = FakeSession()

    def check(self) -> None:
        self.writer.check(self.columns)

    def write(self, number: int, *rows: tuple[Any, ...]) -> Written:
        made = [Row(*self.columns.names)(*row) for row in rows]
        self.session.answers = [("toLocalIterator(prefetchPartitions=True)", lambda: iter(made))]
        frame: Any = self.session.frame(self.columns)
        return self.writer.write(frame, batch(number))


def test_a_batch_and_its_number_are_written_in_one_transaction(file: str) -> None:
    writing = Writing(file)
    writing.check()
    assert writing.write(0, (1, "a"), (2, "b")) == Written(2)
    assert writing.write(0, (1, "a"), (2, "b")) == Written(0, repeated=True)
    assert writing.write(1, (3, "c")) == Written(1)
    assert rows_in(file) == [(1, "a"), (2, "b"), (3, "c")]
    assert rows_in(file, "headgate_batches") == [("identity", "orders", "db", "shop", 1)]


def test_an_upsert_replaces_rows_and_a_replacement_deletes_them(file: str) -> None:
    upsert = Writing(file, mode=Mode.UPSERT, keys=("id",))
    upsert.check()
    upsert.write(0, (1, "a"), (2, "b"), (1, "c"))
    assert rows_in(file) == [(1, "c"), (2, "b")]
    replacement = Writing(file, mode=Mode.REPLACE)
    assert replacement.write(1, (3, "d")) == Written(1)
    assert rows_in(file) == [(3, "d")]


def test_an_upsert_of_keys_only_ignores_existing_rows(file: str) -> None:
    upsert = Writing(file, schema(id="integer"), mode=Mode.UPSERT, keys=("id",))
    upsert.check()
    assert upsert.write(0, (1,), (1,)) == Written(2)
    assert rows_in(file) == [(1,)]


def test_refused_rows_are_reported_before_the_others_are_written(file: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    writing = Writing(file, mode=Mode.UPSERT, keys=("id",))
    writing.check()
    assert writing.write(0, (1, "a"), (None, "b"), (2, None), (3, "c")) == Written(2, 2)
    assert rows_in(file) == [(1, "a"), (3, "c")]
    (((null_key, null_value), number),) = writing.refused
    assert null_key == ('{"id": null, "name": "b"}', "the key id is null")
    assert null_value[0] == '{"id": 2, "name": null}'
    assert "NOT NULL" in null_value[1]
    assert number == 0
    assert rows_in(file, "headgate_batches")[0][-1] == 0


def test_rows_are_written_in_chunks_and_too_many_refusals_end_the_batch(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jdbc, "CHUNK_ROWS", 2)
    monkeypatch.setattr(jdbc, "REFUSED_ROWS_MAX", 2)
    writing = Writing(file, keys=("id",))
    writing.check()
    assert writing.write(0, *((at, "x") for at in range(5))) == Written(5)
    # Two refusals are allowed, four are not.
    assert writing.write(1, (0, "x"), (1, "x"), (9, "x")) == Written(1, 2)
    assert writing.write(2, *((at, "x") for at in range(4)), (10, "x")) == Written(0, 4)
    assert rows_in(file)[-1] == (9, "x")


def test_binary_values_of_refused_rows_are_shown_as_hexadecimal_digits(file: str) -> None:
    writing = Writing(file, schema(id="integer", raw="binary", at="date"), mode=Mode.UPSERT, keys=("id",))
    writing.check()
    writing.write(0, (None, bytearray(b"\x01\xff"), Decimal("1.5")))
    assert writing.refused[0][0][0][0] == '{"id": null, "raw": "01ff", "at": "1.5"}'


def test_missing_columns_are_added_only_if_allowed(file: str) -> None:
    writing = Writing(file, schema(ID="integer"))
    writing.check()
    with pytest.raises(PipelineError, match=r"the table t has no column name\. it has ID"):
        Writing(file).check()
    Writing(file, evolve=True).check()
    assert Writing(file).write(0, (1, "a")) == Written(1)
    assert rows_in(file) == [(1, "a")]


def test_a_table_is_created_only_if_allowed(file: str) -> None:
    with pytest.raises(PipelineError, match="there is no table t"):
        Writing(file, create=False).check()
    Writing(file, keys=("id", "name")).check()
    Writing(file, create=False).check()
    with closing(sqlite3.connect(file)) as connection:
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 't'").fetchall()
    assert sql == 'CREATE TABLE "t" ("id" INTEGER, "name" TEXT, PRIMARY KEY ("id", "name"))'


def test_unsuitable_columns_of_a_database_sink_are_reported(file: str) -> None:
    with pytest.raises(PipelineError, match=r"there is no column nobody\. the rows have id, name"):
        Writing(file, keys=("nobody",)).check()
    with pytest.raises(PipelineError, match="the rows have no columns"):
        Writing(file, schema()).check()


def test_columns_leave_spark_without_loss() -> None:
    columns = schema(
        a="string", b=schema(x="long"), c="timestamp", d="timestamp_ntz", e="date", f="decimal(9,2)", g="short",
        h="byte", i="float", j="boolean", k="binary",
    )  # fmt: skip
    columns = columns.add("l", VarcharType(3)).add("m", CharType(3)).add("n", DayTimeIntervalType())
    frame: Any = FakeSession().frame(columns)
    assert exact_columns(frame).plan == (  # type: ignore[attr-defined]
        "df.select(`a` AS a, to_json(`b`) AS b, unix_micros(`c`) AS c, unix_micros(CAST(`d` AS TIMESTAMP)) AS d, "
        "unix_date(`e`) AS e, `f` AS f, `g` AS g, `h` AS h, `i` AS i, `j` AS j, `k` AS k, `l` AS l, `m` AS m, "
        "CAST(`n` AS STRING) AS n)"
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    hadoop: Any = FakeHadoop()
    return Checkpoint(Files(hadoop), str(tmp_path / "state"), "shop", "identity")


@pytest.fixture
def _ddl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StructType, "fromDDL", from_ddl)


@pytest.fixture
def numbers(file: str) -> Database:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(at, f"n{at}") for at in range(1, 6)])
        connection.commit()
    return Database(f"sqlite:{file}")


def opened(source: JdbcSource) -> Any:
    context: Any = SourceContext(FakeSession(), None, None)  # type: ignore[arg-type]
    return source.open(context)


def polled(frames: Any, checkpoint: Checkpoint) -> list[tuple[int, str]]:
    return [(number, frame.plan) for number, frame in frames.poll(FakeSession(), checkpoint)]


@pytest.mark.usefixtures("_ddl")
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


@pytest.mark.usefixtures("_ddl")
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


@pytest.mark.usefixtures("_ddl")
def test_one_pass_reads_everything_in_batches(numbers: Database, checkpoint: Checkpoint) -> None:
    frames = opened(JdbcSource("people", numbers, "SELECT * FROM t", rows_per_batch=3))
    assert frames.is_one_pass
    assert [number for number, _ in polled(frames, checkpoint)] == [0, 1]
    assert [number for number, _ in polled(frames, checkpoint)] == [2, 3]


@pytest.mark.usefixtures("_ddl")
def test_values_of_another_type_are_poison(numbers: Database, checkpoint: Checkpoint) -> None:
    source = JdbcSource("people", numbers, "SELECT name, id FROM t LIMIT 1", schema="n bigint, id bigint")
    frames = opened(source)
    ((_, plan),) = polled(frames, checkpoint)
    assert plan.startswith("createDataFrame([(None, 'INVALID_VALUE', b'[\"n1\", \"1\"]', \"n: ")
    table = frames.open_table(checkpoint, 5.0)
    assert table.seconds == 5.0
    found = table.frame(FakeSession())
    assert found.plan.startswith("createDataFrame([]).union(createDataFrame([(None")
    assert found.plan.endswith(", verifySchema=False).where(reason IS NULL).select(value.*))")


@pytest.mark.usefixtures("_ddl")
def test_columns_of_a_query_are_checked(numbers: Database) -> None:
    with pytest.raises(PipelineError, match="there is no column ids; did you mean id") as caught:
        opened(JdbcSource("people", numbers, "SELECT * FROM t", "ids"))
    assert caught.value.why == "the query has id, name"
    with pytest.raises(PipelineError, match="schema has 1 columns, and the query has 2"):
        opened(JdbcSource("people", numbers, "SELECT * FROM t", schema="id bigint"))


@pytest.mark.usefixtures("_ddl")
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


class FakeConnection:
    """The parts of a psycopg connection that a session uses."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[Any, ...]] = []
        self.description: Any = None

    def __enter__(self) -> "FakeConnection":
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.append(("exit",))

    def execute(self, statement: str, values: Any = None) -> "FakeConnection":
        self.calls.append((statement, values))
        return self

    def executemany(self, statement: str, rows: Any) -> None:
        self.execute(statement, rows)
        if self.answers:
            raise self.answers.pop(0)

    def transaction(self) -> "FakeConnection":
        return self

    def cursor(self, name: str = "") -> "FakeConnection":
        self.calls.append(("cursor", name))
        return self

    def fetchall(self) -> Any:
        return self.answers.pop(0)

    fetchone = fetchall

    def fetchmany(self, rows: int) -> Any:
        self.calls.append(("fetch", rows))
        return self.answers.pop(0)


def postgresql(connection: Any) -> PostgresqlSession:
    return PostgresqlSession(connection)


def test_postgresql_statements_get_placeholders() -> None:
    connection = FakeConnection([(1,)], [("id",), ("name",)])
    session = postgresql(connection)
    assert session.execute("DELETE FROM t WHERE a LIKE '%'") == []
    connection.description = ()
    assert session.execute("SELECT ?", [5]) == [(1,)]
    assert session.columns("s.t") == ["id", "name"]
    assert connection.calls[0] == ("DELETE FROM t WHERE a LIKE '%%'", None)
    assert connection.calls[1] == ("SELECT %s", [5])
    assert connection.calls[2][1] == ['"s"."t"']
    assert "attnum > 0 AND NOT attisdropped" in connection.calls[2][0]


def test_postgresql_refuses_rows_and_rejects_other_errors() -> None:
    for error in (psycopg.DataError("too long\n"), psycopg.IntegrityError("duplicate key")):
        with pytest.raises(Refusal, match=str(error).strip()):
            postgresql(FakeConnection(error)).execute_many("INSERT INTO t VALUES (?)", [[1]])
    with pytest.raises(psycopg.OperationalError):
        postgresql(FakeConnection(psycopg.OperationalError("gone"))).execute_many("INSERT INTO t VALUES (?)", [[1]])


def test_postgresql_streams_with_a_server_side_cursor() -> None:
    connection = FakeConnection([(1,), (2,)], [(3,)], [])
    assert list(postgresql(connection).stream("SELECT '%' AS id", None, 2)) == [[(1,), (2,)], [(3,)]]
    assert connection.calls[:2] == [("cursor", "headgate"), ("SELECT '%' AS id", None)]
    assert [call for call in connection.calls if call[0] == "fetch"] == [("fetch", 2)] * 3
    connection = FakeConnection([])
    list(postgresql(connection).stream("SELECT '%?' AS id", Between("id", 3, 5), 2))
    text, values = connection.calls[1]
    assert "SELECT '%%?' AS id" in text
    assert "%s" in text
    assert values == (3, 5)


def test_postgresql_finds_the_end_of_a_batch() -> None:
    connection = FakeConnection((7,), (9,), None)
    session = postgresql(connection)
    assert session.next_end("SELECT 1 AS id", "id", None, 2) == 7
    assert session.next_end("SELECT 1 AS id", "id", 7, 2) == 9
    assert session.next_end("SELECT 1 AS id", "id", 9, 2) is None
    assert [values for _, values in connection.calls] == [None, [7], [9]]
    assert [text.count("%s") for text, _ in connection.calls] == [0, 1, 1]


def test_postgresql_types_become_spark_types() -> None:
    def column(display: str, precision: int | None = None, scale: int | None = None) -> Any:
        return SimpleNamespace(name="c", type_display=display, precision=precision, scale=scale)

    connection = FakeConnection()
    connection.description = [
        column("numeric"), column("numeric(9,2)", 9, 2), column("numeric(50,0)", 50, 0), column("timestamptz(3)"),
        column("timestamp"), column("uuid"),
    ]  # fmt: skip
    found = postgresql(connection).described("SELECT * FROM t")
    kinds = ["decimal(38,18)", "decimal(9,2)", "decimal(38,0)", "timestamp", "timestamp_ntz", "string"]
    assert found == [("c", kind) for kind in kinds]
    assert connection.calls == [("SELECT * FROM (SELECT * FROM t) AS q LIMIT 0", None)]
    connection.description = None
    assert postgresql(connection).described("SELECT 1") == []


@pytest.mark.parametrize(
    ("error", "message", "unreachable"),
    [
        (psycopg.OperationalError("refused\n"), "is not reachable", True),
        (psycopg.ProgrammingError("bad option"), "rejects the connection", False),
    ],
)
def test_postgresql_connection_errors_are_explained(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str, unreachable: bool
) -> None:
    def connect(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(PipelineError, match=message) as caught:
        PostgresqlDialect().session(Database("postgresql://db/shop")).__enter__()
    assert caught.value.unreachable is unreachable


def test_a_postgresql_session_uses_the_credentials_and_explains_rejected_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def connect(*arguments: Any, **options: Any) -> Any:
        seen.append((arguments, options))
        return FakeConnection()

    monkeypatch.setattr(psycopg, "connect", connect)
    database = Database("postgresql://db/shop", "ada", "secret")
    with PostgresqlDialect().session(database) as session:
        assert isinstance(session, PostgresqlSession)
    assert (seen[0][1]["user"], seen[0][1]["password"]) == ("ada", "secret")

    def fail() -> None:
        with PostgresqlDialect().session(database):
            raise psycopg.errors.UndefinedTable("no table t\n")

    with pytest.raises(PipelineError, match=r"rejects the statement\. no table t$"):
        fail()
    assert PostgresqlDialect().lock("a") == "SELECT pg_advisory_xact_lock(hashtextextended('a', 0))"
