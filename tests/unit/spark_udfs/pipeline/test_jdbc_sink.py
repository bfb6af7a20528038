"""The database sink with SQLite."""

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import CharType, DayTimeIntervalType, StructType, VarcharType

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.databases.write_values import exact_columns
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Database, Mode
from headgate.spark_udfs.pipeline.sinks import jdbc
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcSink, JdbcWriter
from headgate.spark_udfs.pipeline.sinks.writer import Written
from tests.unit.spark_udfs.fake_spark import FakeSession, schema

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
    found: Any = exact_columns(frame)
    assert found.plan == (
        "df.select(`a` AS a, to_json(`b`) AS b, unix_micros(`c`) AS c, unix_micros(CAST(`d` AS TIMESTAMP)) AS d, "
        "unix_date(`e`) AS e, `f` AS f, `g` AS g, `h` AS h, `i` AS i, `j` AS j, `k` AS k, `l` AS l, `m` AS m, "
        "CAST(`n` AS STRING) AS n)"
    )
