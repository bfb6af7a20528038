"""Files and databases as sources of topics, as with Kafka Connect."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import fastavro
import pytest

from headgate.serdes import Deserializer, RegistryClient
from headgate.spark_udfs.pipeline.errors import PipelineError
from tests.live.postgresql import PostgresqlServer
from tests.spark.pipeline.conftest import CUSTOMER, Place

SOURCES = """
[sources.people]
type = "files"
path = "{folder}/in/*.csv"
schema = "id STRING, name STRING, born DATE"
[sources.old]
type = "jdbc"
url = "sqlite:{folder}/old.db"
table = "clients"
incremental = "number"
rows_per_batch = 2
[sources.reports]
type = "jdbc"
url = "{postgresql}"
user = "postgres"
query = "SELECT 7::int AS n, 2.50::numeric(5,2) AS price, timestamptz '2026-01-02 03:04:05+00' AS at, '50%?' AS note"
[sources.archive]
type = "files"
path = "{folder}/archive"
format = "avro"
[transforms.slim]
type = "sql"
sql = "SELECT id, name FROM people"
[sinks.archive]
type = "parquet"
from = "archive"
path = "{folder}/archived"
[sinks.people]
type = "topic"
from = "slim"
topic = "{customers}"
key = "id"
schema = '''{customer_schema}'''
[sinks.old]
type = "topic"
from = "old"
topic = "{out}"
key = "number"
[sinks.reports]
type = "parquet"
from = "reports"
path = "{folder}/reports"
[dead_letters]
type = "parquet"
path = "{folder}/dead"
"""


def values_of(place: Place, topic: str) -> list[Any]:
    with RegistryClient(place.registry) as client:
        deserializer = Deserializer(client)
        return sorted((deserializer.deserialize(each.value()) for each in place.records(topic)), key=str)


def test_files_and_databases_are_written_to_topics_and_bad_rows_become_dead_letters(
    place: Place, postgresql: PostgresqlServer
) -> None:
    text = SOURCES.replace("{customer_schema}", CUSTOMER).replace("{postgresql}", postgresql.url())
    folder = place.folder / "in"
    folder.mkdir()
    (folder / "one.csv").write_text("id,name,born\na,Ada,1815-12-10\nb,Bob,not a date\nc,,2000-01-01\n")
    with closing(sqlite3.connect(place.folder / "old.db")) as connection:
        connection.execute("CREATE TABLE clients (number INTEGER PRIMARY KEY, name TEXT, since DATE)")
        rows = [(at, f"client {at}", "2020-02-03") for at in range(1, 6)]
        connection.executemany("INSERT INTO clients VALUES (?, ?, ?)", [*rows, (9, "odd", "yesterday")])
        connection.commit()
    (place.folder / "archive").mkdir()
    with (place.folder / "archive" / "2025.avro").open("wb") as file:
        fastavro.writer(file, json.loads(CUSTOMER), [{"id": "old", "name": "Old Customer"}])
    done = place.run(text)
    assert place.parquet("archived") == [{"id": "old", "name": "Old Customer"}]
    assert done["sources"]["people"] == {
        "read": 3, "good": 2, "poison": 1, "poison_by_reason": {"CORRUPT": 1}, "batches": 1, "lag": None,
    }  # fmt: skip
    assert (done["sources"]["old"]["read"], done["sources"]["old"]["good"]) == (6, 5)
    assert done["sources"]["old"]["batches"] == 3
    # The schema does not allow a null name, so the sink refuses the third line.
    assert done["sinks"]["people"] == {"rows": 1, "refused": 1, "repeated_batches": 0}
    assert values_of(place, "customers") == [{"id": "a", "name": "Ada"}]
    old = values_of(place, "out")
    assert [row["number"] for row in old] == [1, 2, 3, 4, 5]
    assert str(old[0]["since"]) == "2020-02-03"
    dead = {(row["source"], row["reason"]): row for row in place.parquet("dead")}
    assert dead.keys() == {("people", "CORRUPT"), ("old", "INVALID_VALUE"), ("sink people", "INVALID_VALUE")}
    assert dead["people", "CORRUPT"]["raw"] == b"b,Bob,not a date"
    assert "one.csv" in dead["people", "CORRUPT"]["detail"]
    assert json.loads(dead["sink people", "INVALID_VALUE"]["raw"]) == {"id": "c"}
    report = place.parquet("reports")[0]
    assert (report["n"], str(report["price"]), report["at"].isoformat(), report["note"]) == (
        7, "2.50", "2026-01-02T03:04:05+00:00", "50%?",
    )  # fmt: skip

    # The next run reads only new rows.
    (folder / "two.csv").write_text("id,name,born\nd,Dora,1999-09-09\n")
    with closing(sqlite3.connect(place.folder / "old.db")) as connection:
        connection.execute("INSERT INTO clients VALUES (10, 'new', NULL)")
        connection.commit()
    again = place.run(text)
    assert (again["sources"]["people"]["read"], again["sources"]["old"]["read"]) == (1, 1)
    assert [row["number"] for row in values_of(place, "out")] == [1, 10, 2, 3, 4, 5]


def test_bad_values_of_a_database_fail_the_batch_without_dead_letters(place: Place) -> None:
    with closing(sqlite3.connect(place.folder / "old.db")) as connection:
        connection.execute("CREATE TABLE clients (number INTEGER, since DATE)")
        connection.execute("INSERT INTO clients VALUES (1, 'yesterday')")
        connection.commit()
    source = '[sources.old]\ntype = "jdbc"\nurl = "sqlite:{folder}/old.db"\ntable = "clients"\n'
    with pytest.raises(PipelineError, match=r"cannot be read, and the pipeline has no \[dead_letters\]"):
        place.run(source + '[sinks.look]\ntype = "console"\nfrom = "old"\n')
