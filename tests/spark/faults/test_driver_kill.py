"""Kill the driver with SIGKILL during a stream. After the restart no row is lost or duplicated."""

import json
import random
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow.parquet
import pytest

from headgate.serdes import RegistryClient
from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.process import ServerProcess
from tests.live.spark_jars import JarsUnavailable, delta_jars
from tests.live.topics import create_topic, produce
from tests.rounds import rounds
from tests.spark.faults.driver import COLUMNS
from tests.spark.faults.notes import FIRST, SECOND, note, payloads
from tests.spark.registering import registered

parquet_file: Any = pyarrow.parquet.ParquetFile

KILLS = rounds(1, 3)
ROWS = rounds(1500, 3000)
"""Five batches. The kill happens between the second and the last one."""
PARTITIONS = 3
POISON_EACH = 13
TOPIC = "killed-driver"
SUBJECT = "killed-driver-value"
RUN_SECONDS_MAX = 240.0
SEED = 20261116

Place: TypeAlias = tuple[int, int, int | None, str | None, str | None]


def records(client: RegistryClient) -> list[bytes]:
    """Payloads of two versions, every thirteenth truncated."""
    half = ROWS // 2
    made = payloads(FIRST, registered(client, SUBJECT, FIRST), range(half))
    made += payloads(SECOND, registered(client, SUBJECT, SECOND), range(half, ROWS))
    return [payload[:-1] if number % POISON_EACH == 0 else payload for number, payload in enumerate(made)]


def expected() -> list[Place]:
    rows: list[Place] = []
    for number in range(ROWS):
        partition, offset = number % PARTITIONS, number // PARTITIONS
        if number % POISON_EACH == 0:
            rows.append((partition, offset, None, None, "TRUNCATED"))
        else:
            rows.append((partition, offset, number, note(number), None))
    return sorted(rows, key=lambda row: row[:2])


def in_table(path: Path, what: str) -> list[Any]:
    """Rows of the SQLite table; empty until the driver has created it."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        try:
            return connection.execute(f"select {what} from rows").fetchall()
        except sqlite3.OperationalError:
            return []


def count_in_table(path: Path) -> int:
    return sum(count for (count,) in in_table(path, "count(*)"))


def in_files(folder: Path) -> list[Place]:
    """The rows of the files in Spark's sink log. A killed driver leaves other files behind."""
    named = set()
    for batch in (folder / "_spark_metadata").glob("[0-9]*"):
        _, *entries = batch.read_text(encoding="utf-8").splitlines()
        named |= {unquote(urlsplit(json.loads(entry)["path"]).path) for entry in entries}
    tables = [parquet_file(path).read(columns=list(COLUMNS)) for path in sorted(named)]
    return [tuple(row[name] for name in COLUMNS) for table in tables for row in table.to_pylist()]


@pytest.mark.slow
def test_a_killed_driver_neither_loses_nor_duplicates_rows(
    headgate_broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path
) -> None:
    if shutil.which("java") is None:
        unavailable("Spark needs Java")
    randomness = random.Random(SEED)
    with RegistryClient(registry.url) as client:
        made = records(client)
    create_topic(headgate_broker.address, TOPIC, PARTITIONS)
    produce(headgate_broker.address, TOPIC, made, partitions=PARTITIONS)
    arguments = [headgate_broker.address, registry.url, TOPIC, SUBJECT, str(tmp_path)]
    table, files = tmp_path / "rows.db", tmp_path / "files"

    def driver() -> ServerProcess:
        command = [sys.executable, "-m", "tests.spark.faults.driver", *arguments]
        return ServerProcess(command, tmp_path / "driver.log", cwd=ROOT, environment={"PYSPARK_PYTHON": sys.executable})

    killed_at = []
    for kill in range(1, KILLS + 1):
        goal = ROWS * kill // (KILLS + 2)
        running = driver()
        running.start(lambda goal=goal: count_in_table(table) > goal, RUN_SECONDS_MAX)  # type: ignore[misc]
        time.sleep(randomness.uniform(0, 0.4))
        running.kill()
        killed_at.append((count_in_table(table), len(in_files(files))))
    print(f"killed with (table, files) at {killed_at} of {ROWS} rows")
    assert any(rows < ROWS for rows, _ in killed_at), "every kill came too late to matter"

    last = driver()
    last.start(lambda: count_in_table(table) >= ROWS, RUN_SECONDS_MAX)
    deadline = time.monotonic() + RUN_SECONDS_MAX
    while len(in_files(files)) < ROWS:
        assert time.monotonic() < deadline, last.tail()
        assert last.running, last.tail()
        time.sleep(0.2)
    last.kill()

    assert sorted(in_table(table, ", ".join(f'"{name}"' for name in COLUMNS)), key=lambda row: row[:2]) == expected()
    assert sorted(in_files(files), key=lambda row: row[:2]) == expected()


PIPELINE = """
checkpoint = "{folder}/state"
trigger = "100 milliseconds"
[kafka]
bootstrap.servers = "{broker}"
[registry]
url = "{registry}"
[spark]
master = "local[2]"
jars = "{jars}"
sql.shuffle.partitions = 2
driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
[sources.notes]
type = "topic"
topic = "{topic}"
rows_per_batch = 200
[sinks.all]
type = "delta"
from = "notes"
path = "{folder}/all"
[dead_letters]
type = "delta"
path = "{folder}/dead"
"""


@pytest.mark.slow
def test_a_driver_killed_at_a_commit_writes_each_row_to_a_delta_table_once(
    headgate_broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path
) -> None:
    try:
        jars = delta_jars()
    except JarsUnavailable as error:
        unavailable(str(error))
    topic, rows = "killed-pipeline", 1000
    with RegistryClient(registry.url) as client:
        made = payloads(FIRST, registered(client, f"{topic}-value", FIRST), range(rows))
    made = [payload[:-1] if number % POISON_EACH == 0 else payload for number, payload in enumerate(made)]
    create_topic(headgate_broker.address, topic, PARTITIONS)
    produce(headgate_broker.address, topic, made, partitions=PARTITIONS)
    places = {"folder": tmp_path, "broker": headgate_broker.address, "registry": registry.url, "jars": jars}
    file = tmp_path / "notes.toml"
    file.write_text(PIPELINE.format(topic=topic, **places))

    def commits() -> int:
        return len(list((tmp_path / "all" / "_delta_log").glob("*.json")))

    def pipeline(*arguments: str) -> ServerProcess:
        command = [sys.executable, "-m", "headgate.spark_udfs.pipeline", str(file), *arguments]
        return ServerProcess(command, tmp_path / "driver.log", cwd=ROOT, environment={"PYSPARK_PYTHON": sys.executable})

    running = pipeline()
    # The first commit creates the table. The kill follows a commit of Delta, before the commit of Spark's checkpoint.
    running.start(lambda: commits() > 2, RUN_SECONDS_MAX)
    running.kill()
    good = [number for number in range(rows) if number % POISON_EACH]
    assert len(delta_rows(tmp_path / "all", "id")) < len(good), "the kill came too late to matter"

    last = pipeline()
    last.start(lambda: len(delta_rows(tmp_path / "all", "id")) >= len(good), RUN_SECONDS_MAX)
    last.kill()
    assert sorted(delta_rows(tmp_path / "all", "id")) == good
    dead = delta_rows(tmp_path / "dead", "offset")
    assert len(dead) == rows - len(good)


def delta_rows(table: Path, column: str) -> list[Any]:
    """A column of the files in the log of a Delta table. The table must have no removed files and no checkpoints."""
    entries = [json.loads(line) for log in (table / "_delta_log").glob("*.json") for line in log.open(encoding="utf-8")]
    files = [table / unquote(entry["add"]["path"]) for entry in entries if "add" in entry]
    return [value for file in files for value in parquet_file(file).read(columns=[column])[column].to_pylist()]
