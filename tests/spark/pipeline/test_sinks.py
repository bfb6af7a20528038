"""Every sink, fed from one topic with poison, and the handling of repeated batches."""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headgate.serdes import Deserializer, Reason, Record, RegistryClient, read_dead_letter
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.run import Runner
from headgate.spark_udfs.pipeline.sinks import delta
from tests.live.postgresql import PostgresqlServer
from tests.spark.pipeline.conftest import NOON, ORDER, Place, letters_of, order, sqlite_rows

NOON_UTC = datetime.fromtimestamp(NOON / 1000, UTC)

ALL_SINKS = """
[sources.orders]
type = "topic"
topic = "{orders}"
metadata = true
[transforms.plain]
type = "sql"
sql = "SELECT id, customer, amount, at, named_struct('offset', _record.offset) AS origin FROM orders"
[transforms.slim]
type = "sql"
sql = "SELECT id, customer FROM orders"
[sinks.lake]
type = "parquet"
from = "plain"
path = "{folder}/lake"
partition_by = ["customer"]
[sinks.sqlite]
type = "jdbc"
from = "plain"
url = "sqlite:{folder}/orders.db"
table = "orders"
[sinks.postgresql]
type = "jdbc"
from = "plain"
url = "{postgresql}"
user = "postgres"
table = "{out}"
[sinks.latest]
type = "jdbc"
from = "slim"
url = "sqlite:{folder}/orders.db"
table = "latest"
mode = "upsert"
keys = ["customer"]
[sinks.topic]
type = "topic"
from = "slim"
topic = "{out}"
key = "id"
[sinks.user]
type = "function"
from = "slim"
function = "user_sink:write"
[sinks.look]
type = "console"
from = "slim"
rows = 1
[dead_letters]
type = "topic"
topic = "{dead}"
"""

USER_SINK = """
calls = []
fail_on = None
def write(rows, batch):
    calls.append((batch.name, sorted(row.id for row in rows.collect())))
    if fail_on is not None and len(calls) == fail_on:
        raise RuntimeError("the user disk is full")
"""


@pytest.fixture
def user_sink(place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the function sink, next to the pipeline file."""
    (place.folder / "user_sink.py").write_text(USER_SINK)
    monkeypatch.setattr(sys, "path", [str(place.folder), *sys.path])
    monkeypatch.delitem(sys.modules, "user_sink", raising=False)
    import importlib

    yield importlib.import_module("user_sink")
    sys.modules.pop("user_sink", None)


def test_every_sink_writes_every_good_row_once_when_a_batch_is_repeated(
    place: Place, postgresql: PostgresqlServer, user_sink: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ALL_SINKS.replace("{postgresql}", postgresql.url())
    table = place.topic("out")
    place.register("orders", ORDER)
    odd = order(4, "nul\0l")
    large = b"\xff" * 990_000
    place.send("orders", ORDER, [order(1), large, order(2, "bob"), None, order(3), odd])

    # The function fails after most sinks have written, and before Spark commits the batch.
    user_sink.fail_on = 1
    with pytest.raises(PipelineError, match="user disk is full"):
        place.run(text)
    user_sink.fail_on = None
    done = place.run(text)

    assert (done["read"], done["good"], done["poison"]) == (6, 4, 2)
    assert done["poison_by_reason"] == {"BAD_MAGIC": 1, "NULL": 1}
    assert done["sinks"]["lake"] == {"rows": 0, "refused": 0, "repeated_batches": 1}
    assert done["sinks"]["sqlite"]["repeated_batches"] == 1

    lake = place.parquet("lake")
    # Neither a folder name nor a PostgreSQL string can contain U+0000: that row is a dead letter.
    assert sorted(row["id"] for row in lake) == [1, 2, 3]
    assert {row["id"]: row["at"] for row in lake}[1] == NOON_UTC
    rows = sqlite_rows(place.folder / "orders.db", "SELECT id, customer, amount, at FROM orders ORDER BY id")
    assert rows[0] == (1, "ada", 1.5, "2023-11-15T12:00:00.000000Z")
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    latest = dict(sqlite_rows(place.folder / "orders.db", "SELECT customer, id FROM latest"))
    assert latest.keys() == {"ada", "bob", "nul\0l"}
    assert latest["ada"] in {1, 3}
    with psycopg.connect(postgresql.url(), user="postgres") as connection:
        found = connection.execute(f'SELECT id, at, origin FROM "{table}" ORDER BY id').fetchall()
    assert [row[0] for row in found] == [1, 2, 3]
    assert found[0][1] == NOON_UTC
    assert isinstance(found[0][2]["offset"], int)
    assert done["sinks"]["postgresql"] == {"rows": 0, "refused": 0, "repeated_batches": 1}
    assert [ids for _, ids in user_sink.calls] == [[1, 2, 3, 4], [1, 2, 3, 4]]
    assert user_sink.calls[0][0] == user_sink.calls[1][0], "a repeated batch has the same name"
    assert '"customer":"ada"' in capsys.readouterr().out

    with RegistryClient(place.registry) as client:
        deserializer = Deserializer(client)
        values = [(record.key(), deserializer.deserialize(record.value())) for record in place.records("out")]
    # At least once: the batch was written twice.
    assert sorted(values, key=str) == sorted(
        [(str(at).encode(), {"id": at, "customer": who}) for at, who in enumerate(["ada", "bob", "ada", "nul\0l"], 1)]
        * 2,
        key=str,
    )
    letters = [read_dead_letter(_record(each)) for each in place.records("dead")]
    reasons = [(letter.reason.name if letter.reason else None, letter.origin.topic) for letter in letters]
    assert set(reasons) == {
        ("BAD_MAGIC", place.topic("orders")),
        ("NULL", place.topic("orders")),
        ("INVALID_VALUE", ""),
    }
    truncated = next(letter for letter in letters if letter.reason is Reason.BAD_MAGIC)
    assert truncated.detail.startswith("truncated: the record had 990000 bytes; ")
    assert large.startswith(truncated.origin.value or b"?")
    refused = [letter for letter in letters if letter.origin.topic == ""]
    assert {json.loads(letter.origin.value or b"{}")["id"] for letter in refused} == {4}
    assert {letter.detail for letter in refused} == {
        "the partition value cannot be the name of a folder",
        "a PostgreSQL string cannot contain the character U+0000",
    }


def _record(message: Any) -> Record:
    return Record(message.topic(), message.key(), message.value(), tuple(message.headers() or ()))


def test_a_stream_continues_from_its_checkpoint_and_a_new_checkpoint_starts_over(place: Place) -> None:
    text = """
[sources.orders]
type = "topic"
topic = "{orders}"
rows_per_batch = 2
[sinks.lake]
type = "jdbc"
from = "orders"
url = "sqlite:{folder}/orders.db"
table = "orders"
[dead_letters]
type = "jdbc"
url = "sqlite:{folder}/orders.db"
"""
    place.register("orders", ORDER)
    place.send("orders", ORDER, [order(1), b"", order(2), order(3)])
    first = place.run(text)
    place.send("orders", ORDER, [order(4), b"\0\0\0\0\0x"])
    second = place.run(text)
    assert (first["read"], first["good"], second["read"], second["good"]) == (4, 3, 2, 1)
    file = place.folder / "orders.db"
    assert sqlite_rows(file, "SELECT id FROM orders ORDER BY id") == [(1,), (2,), (3,), (4,)]
    dead = sqlite_rows(file, "SELECT topic, reason, raw, source, pipeline FROM dead_letters ORDER BY reason")
    assert [(row[1], row[2]) for row in dead] == [("TOO_SHORT", b""), ("UNKNOWN_SCHEMA", b"\0\0\0\0\0x")]
    assert dead[0][0] == place.topic("orders")
    assert dead[0][3:] == ("orders", "test")
    letters = letters_of(f"sqlite:{file}")
    assert [(each.reason, each.origin.value) for each in letters] == [
        (Reason.TOO_SHORT, b""),
        (Reason.UNKNOWN_SCHEMA, b"\0\0\0\0\0x"),
    ]
    assert [each.origin.offset for each in letters] == [1, 5]
    assert all(each.failed_at_ms is not None and each.failed_at_ms > 1_700_000_000_000 for each in letters)

    # Batch 0 of another checkpoint is not a repetition of batch 0 of the first.
    place.run(text, checkpoint=str(place.folder / "new"))
    assert len(sqlite_rows(file, "SELECT id FROM orders")) == 8


def sql_sink(sql: str) -> str:
    return f'[transforms.t]\ntype = "sql"\nsql = "{sql}"\n[sinks.c]\ntype = "console"\nfrom = "t"\n'


def test_impossible_pipelines_fail_before_they_start(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.register("orders", ORDER)
    head = '[sources.orders]\ntype = "topic"\ntopic = "{orders}"\non_poison = "FAIL"\n'

    def refused(sink: str) -> str:
        with pytest.raises(PipelineError) as caught:
            Runner(place.spark, place.pipeline(head + sink)).run(once=True)
        return str(caught.value)

    # The session may have Delta, so the check looks for an extension that does not exist.
    with monkeypatch.context() as patch:
        patch.setattr(delta, "EXTENSION", "io.delta.sql.NoSuchExtension")
        message = refused(f'[sinks.d]\ntype = "delta"\nfrom = "orders"\npath = "{tmp_path}/d"\n')
    assert "sink d: this Spark session has no Delta Lake. add its jars for Spark 4" in message
    assert not (tmp_path / "d").exists()
    nowhere = '[sources.old]\ntype = "jdbc"\nurl = "sqlite:{folder}/no.db"\ntable = "t"\n'
    message = refused(nowhere + '[sinks.o]\ntype = "console"\nfrom = "old"\n')
    assert message.startswith("source old: there is no SQLite database")
    message = refused('[sinks.f]\ntype = "function"\nfrom = "orders"\nfunction = "no_such_module:write"\n')
    assert "there is no module no_such_module" in message
    assert "has no watermark" in refused(sql_sink("SELECT count(*) FROM orders"))
    assert "ORDER BY is not supported on an unbounded stream" in refused(sql_sink("SELECT * FROM orders ORDER BY id"))
    message = refused(sql_sink("SELECT idd FROM orders"))
    assert "idd" in message
    assert "orders has id, customer, amount, at" in message
    table = f'[sources.people]\ntype = "topic"\ntopic = "{place.topic("orders")}"\nread = "table"\non_poison = "DROP"\n'
    for sql, kind in (
        ("SELECT people.id FROM people LEFT JOIN orders ON people.id = orders.id", "keeps all rows of a table"),
        ("SELECT people.id FROM orders FULL JOIN people ON people.id = orders.id", "keeps all rows of a table"),
        ("SELECT id FROM orders UNION ALL SELECT id FROM people", "a union of a stream and a table"),
        ("SELECT id FROM people WHERE id IN (SELECT id FROM orders)", "subquery"),
    ):
        assert kind in refused(table + sql_sink(sql)), sql
    wrong = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
    topic = f'[sinks.t]\ntype = "topic"\nfrom = "orders"\ntopic = "x"\nschema = \'{wrong}\'\n'
    message = refused(f'{topic}subject = "{place.topic("orders")}-value"\n')
    assert "incompatible" in message.lower()
    key = '[sinks.k]\ntype = "topic"\nfrom = "orders"\ntopic = "x"\nkey = "customr"\n'
    assert re.match(r"sink k: .*`customr` cannot be resolved.*`customer`", refused(key))
    assert "#" not in refused(key), "the message contains no query plan"
    twice = sql_sink("SELECT id, customer AS ID FROM orders").replace("console", "parquet") + f'path = "{tmp_path}/p"\n'
    assert "sink c: there are two columns ID. the rows have id, ID" in refused(twice)
    parquet = '[sinks.p]\ntype = "parquet"\nfrom = "orders"\npath = '
    (tmp_path / "file").write_text("")
    message = refused(f'{parquet}"{tmp_path}/file/lake"\n')
    assert message.startswith(f"sink p: cannot create the folder {tmp_path}/file/lake. ")
    assert "sink p: cannot access nowhere://lake. No FileSystem" in refused(f'{parquet}"nowhere://lake"\n')
    with pytest.raises(PipelineError, match=f"^checkpoint: cannot create the folder {tmp_path}/file/state"):
        place.run(f'{head}{parquet}"{tmp_path}/p"\n', checkpoint=f"{tmp_path}/file/state")
    assert not (place.folder / "state" / "queries").exists()
