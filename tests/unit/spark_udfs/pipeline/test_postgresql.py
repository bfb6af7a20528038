"""PostgreSQL sessions with a fake connection."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.databases.dialect import Between, Refusal
from headgate.spark_udfs.pipeline.databases.postgresql import PostgresqlDialect, PostgresqlSession
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database
from tests.unit.spark_udfs.fake_spark import schema

pytestmark = pytest.mark.usefixtures("columns_without_session")


ROWS = schema(id="integer", name="string")


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


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
