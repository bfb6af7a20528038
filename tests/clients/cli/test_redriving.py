"""Re-driving with repairs, and by several runs at the same time."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import lib as pa
from pyarrow import parquet

from headgate.gateway.kafka.cluster import connect, connection_options
from headgate.proxy.dead_letters.letter import LetterFilter, StoredLetter
from headgate.proxy.dead_letters.redriving import LetterSender, Report, TopicClaims, redrive_letters
from headgate.proxy.dead_letters.tables import open_table
from headgate.proxy.dead_letters.topic import DeadLetterTopic
from headgate.serdes import Poison, Reason, Record, RegistryClient, avro_schema, to_dead_letter
from headgate.serdes.framing import frame
from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers
from tests.clients.cli.conftest import Cli
from tests.clients.cli.test_dead_letters import letter, topic, values, write
from tests.live.headgate_registry import HeadgateRegistry

__all__ = ["topic"]

LETTERS = 700
"""More than one batch."""


async def run(
    cli: Cli, topic: str, by: str, repair: Callable[[StoredLetter], Awaitable[bytes | None]] | None = None
) -> Report:
    options = connection_options(cli.address, None)
    async with connect(options) as cluster, LetterSender(options, by, repair) as sender:
        letters = DeadLetterTopic(options, cluster, topic)
        claims = TopicClaims(letters, sender, by)
        return await redrive_letters(letters, claims, LetterFilter(), sender, execute=True)


def test_concurrent_runs_send_each_letter_once(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, number) for number in range(LETTERS)])

    async def both() -> tuple[Report, Report]:
        meeting = asyncio.Barrier(2)

        def once() -> Callable[[StoredLetter], Awaitable[bytes | None]]:
            met = False

            async def repair(stored: StoredLetter) -> bytes | None:
                """Both runs have read all states, and no mark is written yet, when the first letter is prepared."""
                nonlocal met
                if not met:
                    met = True
                    await meeting.wait()
                return None

            return repair

        return await asyncio.gather(run(cli, f"{topic}.dead", "one", once()), run(cli, f"{topic}.dead", "two", once()))

    reports = asyncio.run(both())
    assert sum(report.sent for report in reports) == LETTERS
    assert sum(report.claimed for report in reports) == LETTERS
    assert sorted(values(cli, topic)) == sorted(letter(topic, number).value or b"" for number in range(LETTERS))
    assert cli("dead", "count", f"{topic}.dead").rows == [["TRUNCATED", "1", "redriven", str(LETTERS)]]


def test_an_earlier_claim_of_another_run_wins(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, number) for number in range(3)])

    async def claim_elsewhere(stored: StoredLetter) -> bytes | None:
        if stored.record.offset == 0:
            marks = [mark_headers(Mark(0, at, MarkState.STARTED, "other", 1, "other run")) for at in (1, 77)]
            await asyncio.to_thread(write, cli, f"{topic}.dead", [Record("", None, None, each, 0) for each in marks])
        return None

    report = asyncio.run(run(cli, f"{topic}.dead", "test", claim_elsewhere))
    assert (report.sent, report.claimed) == (2, 1)
    assert values(cli, topic) == [letter(topic, number).value for number in (0, 2)]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()


SCHEMA = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}"""
BODY = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04ok"
"""id 2^63 - 1, which a double cannot represent, and note "ok"."""


def poison(topic: str, value: bytes, reason: Reason) -> Record:
    origin = Record(topic, b"k", value, (), 0, 0, 1000)
    return to_dead_letter(origin, Poison(reason, "", value, None), dead_letter_topic="d", application="a", now_ms=1)


def test_values_are_repaired_with_a_schema_or_a_patch(cli: Cli, topic: str, registry: HeadgateRegistry) -> None:
    dead, at = f"{topic}.dead", ("--registry", registry.url)
    with RegistryClient(registry.url) as client:
        schema_id = client.register(f"{topic}-value", avro_schema(SCHEMA)).id
    assert schema_id is not None
    good = frame(schema_id, BODY)

    # Another schema: a value with an unknown id, one without an id, and one that the schema cannot read.
    bad = [frame(9999, BODY), BODY, b"\0\0\0\0\7nonsense"]
    write(cli, dead, [poison(topic, value, Reason.UNKNOWN_SCHEMA) for value in bad])
    dry = cli("dead", "redrive", dead, "--value-subject", f"{topic}-value", *at, code=1)
    assert "letter 0:2 not sent: schema" in dry.err
    assert dry.rows == [[topic, "2"]]
    cli("dead", "redrive", dead, "--value-schema-id", str(schema_id), *at, "--execute", code=1)
    assert values(cli, topic) == [good, good]
    cli("dead", "purge", dead, "--yes")

    # A patch: of a value with a schema, of JSON text, and of values that cannot be decoded.
    patched = [good, b'{"id": 9007199254740993, "note": "ok"}', good[:-1], b"text"]
    write(cli, dead, [poison(topic, value, Reason.INVALID_VALUE) for value in patched])
    done = cli("dead", "redrive", dead, "--patch", '.note = "new"', *at, "--execute", code=1)
    assert "the value cannot be patched, because it cannot be decoded: TRUNCATED" in done.err
    assert done.err.count("not sent") == 3
    assert values(cli, topic)[2:] == [
        frame(schema_id, BODY[:-3] + b"\x06new"),
        b'{"id": 9007199254740993, "note": "new"}',
    ]
    cli("dead", "purge", dead, "--yes")

    write(cli, dead, [poison(topic, b'{"id": 7, "note": "text"}', Reason.BAD_MAGIC)])
    both = ("--patch", ".", "--value-subject", f"{topic}-value", *at, "--execute")
    cli("dead", "redrive", dead, *both)
    assert values(cli, topic)[4:] == [frame(schema_id, b"\x0e\x08text")]


def test_a_bad_patch_is_reported(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [poison(topic, b"{}", Reason.INVALID_VALUE)])
    redrive = ("dead", "redrive", f"{topic}.dead", "--execute", "--patch")
    assert "is not a jq program" in cli(*redrive, ".[", code=2).err
    assert "must not import files" in cli(*redrive, 'import "a" as $a; .', code=2).err
    assert "the program returns several values" in cli(*redrive, ".,.", code=1).err
    assert "Cannot index" in cli(*redrive, '.a = "x" | .a.b', code=1).err
    assert values(cli, topic) == []


COLUMNS = {
    "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC"),
    "key": pa.binary(), "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "raw": pa.binary(), "reason": pa.string(), "detail": pa.string(), "schema_id": pa.int64(),
    "source": pa.string(), "pipeline": pa.string(), "failed_at": pa.timestamp("us", "UTC"),
}  # fmt: skip
"""The columns of a pipeline's dead-letter table."""
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def row(topic: str | None, number: int) -> dict[str, object]:
    headers = [{"key": "own", "value": b"header"}]
    values = (topic, 0, number, AT, b"k", headers, b"v%d" % number, "TRUNCATED", "at 1", 7, "orders", "etl", AT)
    return dict(zip(COLUMNS, values, strict=True))


def parquet_table(folder: Path, topic: str) -> str:
    for batch, rows in (
        ("headgate_batch=b", [row(topic, 0), row(None, 1)]),
        ("headgate_batch=a", [row(topic, 2)]),
        ("_headgate_c", [row(topic, 3)]),
    ):
        file = folder / "letters" / batch / "part-0.parquet"
        file.parent.mkdir(parents=True)
        table = pa.Table.from_pylist(rows, pa.schema(list(COLUMNS.items())))
        parquet.write_table(table, file)  # type: ignore[no-untyped-call]
    return str(folder / "letters")


def sqlite_table(folder: Path, topic: str) -> str:
    with sqlite3.connect(folder / "letters.db") as connection:
        connection.execute(f"CREATE TABLE dead_letters ({', '.join(COLUMNS)})")
        for each in (row(topic, 0), row(None, 1), row(topic, 2)):
            texts = {"headers": '[{"key":"own","value":"aGVhZGVy"}]', "failed_at": "2026-01-02T03:04:05.678000Z"}
            values = tuple({**each, **texts, "timestamp": "2026-01-02T03:04:05.678000Z"}.values())
            connection.execute(f"INSERT INTO dead_letters VALUES ({', '.join('?' * len(values))})", values)
    connection.close()
    return f"sqlite:{folder}/letters.db"


@pytest.mark.parametrize("made", [parquet_table, sqlite_table])
def test_letters_of_a_table_are_listed_shown_and_redriven_once(
    cli: Cli, topic: str, tmp_path: Path, made: Callable[[Path, str], str]
) -> None:
    table = made(tmp_path, topic)
    rows = [json.loads(line) for line in cli("dead", "list", table, "--json", "--application", "etl").lines]
    assert sorted(each["source"]["offset"] for each in rows) == [0, 1, 2]
    assert {(each["reason"], each["schema_id"], each["failed_at"]) for each in rows} == {
        ("TRUNCATED", 7, int(AT.timestamp() * 1000))
    }
    assert cli("dead", "list", table, "--until", "2026-01-01").rows == []
    first = next(each for each in rows if each["source"]["offset"] == 2)
    shown = json.loads(cli("dead", "show", table, f"{first['partition']}:{first['offset']}", "--json").out)
    assert shown["payload_base64"] == base64.b64encode(b"v2").decode()
    files = sorted(tmp_path.rglob("*"))
    assert cli("dead", "redrive", table, code=1).rows == [[topic, "2"]]
    assert sorted(tmp_path.rglob("*")) == files, "a dry run writes nothing"

    for _ in range(2):
        done = cli("dead", "redrive", table, "--execute", code=1)
        assert "the headers do not contain the source topic" in done.err
    assert sorted(values(cli, topic)) == [b"v0", b"v2"]
    sent = json.loads(cli("consume", topic, "-n", "1", "--json", "--raw").lines[0])
    assert sent["headers"][0]["name"] == "own"
    assert cli("dead", "count", table).rows == [["TRUNCATED", "7", "redriven", "2"], ["TRUNCATED", "7", "waiting", "1"]]


def test_tables_that_need_spark_or_are_no_tables_are_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "text.parquet").write_text("text")
    (tmp_path / "empty.db").touch()
    for table, error in (
        (f"{tmp_path}/delta", "is a Delta table; read it with Spark"),
        ("postgresql://host/db", "need Spark or a client of the database"),
        (f"{tmp_path}/text.parquet", "cannot read"),
        (f"{tmp_path}/missing", "there is no"),
        (f"sqlite:{tmp_path}/empty.db", "no such table"),
        (f"sqlite:{tmp_path}/missing.db", "unable to open"),
    ):
        assert error in cli("dead", "list", table, code=1).err
    assert "tables are not purged" in cli("dead", "purge", f"{tmp_path}/delta", "--yes", code=2).err


def test_concurrent_runs_claim_a_letter_of_a_table_once(tmp_path: Path) -> None:
    table = open_table(sqlite_table(tmp_path, "t"), "test")

    async def work() -> None:
        letters = [stored async for stored in table.read(lambda _: True)]
        other = open_table(table.location, "other")
        assert await other.claims.claim(letters[:1]) == letters[:1]
        assert await table.claims.claim(letters) == letters[1:]
        await table.claims.complete(letters[1:])
        states = [str(stored.state) async for stored in other.read(lambda _: True)]
        assert states == ["unknown", "redriven", "redriven"]

    asyncio.run(work())
