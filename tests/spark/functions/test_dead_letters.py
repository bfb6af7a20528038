"""Dead-letter records have the same headers as those of `serdes.dead_letter`, and every reader the same verdict."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.serdes import Poison, Reason, Record, read_dead_letter, to_dead_letter
from headgate.serdes.dead_letter import FAILED_AT, PREFIX, REDRIVE_ATTEMPT
from headgate.spark_udfs import dead_letters, to_dead_letter_records
from headgate.spark_udfs.dead_letter import COLUMNS
from headgate.testing import Headgate
from tests.clients.cli.conftest import Cli
from tests.clients.cli.launcher import Launcher
from tests.spark.functions import poison_ways as ways
from tests.spark.functions.forms import by_frame
from tests.spark.functions.payloads import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
OWN_HEADERS: list[list[tuple[str, bytes | None]] | None] = [
    [("trace", b"1"), ("empty", None), (PREFIX + "reason", b"OLD"), ("trace", b"2")],
    [(REDRIVE_ATTEMPT, b"2")],
    [(REDRIVE_ATTEMPT, b"many")],
    [(REDRIVE_ATTEMPT, b"-7")],
    [],
    None,
]


def test_records_have_the_same_headers_as_in_serdes(spark: "SparkSession") -> None:
    rows = [
        (
            "orders", number, 10 + number, AT, bytearray(b"k"), own, bytearray(b"bad\xff"), "TRUNCATED",
            "note: größer " + "x" * 3000, None if number % 2 else 7,
        )
        for number, own in enumerate(OWN_HEADERS)
    ]  # fmt: skip
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    letters = spark.createDataFrame(rows, kinds).orderBy("offset")
    records = to_dead_letter_records(letters, application="billing").collect()
    assert len(records) == len(OWN_HEADERS)
    for number, (record, own) in enumerate(zip(records, OWN_HEADERS, strict=True)):
        origin = Record("orders", b"k", b"bad\xff", tuple(own or ()), number, 10 + number, int(AT.timestamp() * 1000))
        detail = "note: größer " + "x" * 3000
        poison = Poison(Reason.TRUNCATED, detail, origin.value, None if number % 2 else 7)
        written = [(header.key, None if header.value is None else bytes(header.value)) for header in record.headers]
        now = int(dict(written)[FAILED_AT] or 0)
        expected = to_dead_letter(origin, poison, dead_letter_topic="orders.dead", application="billing", now_ms=now)
        assert written == list(expected.headers)
        assert (record.topic, bytes(record.key), bytes(record.value)) == ("orders.dead", b"k", b"bad\xff")
        assert read_dead_letter(Record(record.topic, b"k", b"bad\xff", tuple(written))).origin.offset == 10 + number


def test_rows_without_a_topic_omit_the_topic_headers(spark: "SparkSession") -> None:
    decoded = spark.sql("SELECT CAST(null AS int) value, 'NULL' reason, CAST(null AS bigint) schema_id, X'' raw")
    (record,) = to_dead_letter_records(dead_letters(decoded), "t.dead", application="a").collect()
    names = [header.key.removeprefix(PREFIX) for header in record.headers]
    assert names == ["reason", "detail", "part", "application", "attempt", "failed_at"]


def test_every_reader_has_the_same_verdict_for_every_reason(spark: "SparkSession", tmp_path: Path) -> None:
    with Headgate(tmp_path / "headgate") as headgate, Launcher(tmp_path) as launcher:
        corpus = ways.Corpus(headgate)
        assert {*corpus.reasons, Reason.REGISTRY_UNAVAILABLE} == set(Reason), "add a payload for each new reason"
        cli = Cli(headgate.bootstrap_servers, tmp_path, launcher)
        ways.write(headgate, "verdict", corpus.payloads)
        ways.write(headgate, "late", [corpus.late])
        options = {"registry": headgate.registry_url, "on_registry_down": "DEAD_LETTER"}
        decoded = by_frame(frame_of(spark, corpus.payloads), ways.SUBJECT, **options)
        late = by_frame(frame_of(spark, [corpus.late]), ways.SUBJECT, **options)

        expected = [reason.name for reason in corpus.reasons]
        assert ways.by_python(headgate, corpus.payloads) == expected
        assert ways.by_dead_letter_table(decoded, tmp_path / "letters", len(expected)) == expected
        # A topic may contain tombstones, so a null is poison only for a reader that requires a value.
        in_topic = [None if name == "NULL" else name for name in expected]
        assert ways.by_http(headgate, "verdict") == in_topic
        assert ways.by_command_line(headgate, cli, "verdict") == in_topic
        assert ways.by_dead_letter_topic(headgate, cli, "verdict", len(expected)) == in_topic

        headgate.registry.kill()
        unavailable = [Reason.REGISTRY_UNAVAILABLE.name]
        assert ways.by_python(headgate, [corpus.late], reader=None) == unavailable
        assert ways.by_dead_letter_table(late, tmp_path / "late", 1) == unavailable
        assert ways.by_http(headgate, "late") == unavailable
        assert ways.by_command_line(headgate, cli, "late") == unavailable
        assert ways.by_dead_letter_topic(headgate, cli, "late", 1) == unavailable
