"""Payloads that crash other decoders affect only their own rows: in a DataFrame, in a column and in a topic."""

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.serdes import RegistryClient
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from headgate.spark_udfs import decode_frame, decode_topic, from_registry_avro
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.topics import create_topic, produce
from tests.spark.registering import registered

TREE: dict[str, Any] = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "label", "type": "string"},
        {"name": "weights", "type": {"type": "array", "items": "double"}},
        {"name": "gaps", "type": {"type": "array", "items": "null"}},
        {"name": "names", "type": {"type": "map", "values": "bytes"}},
        {"name": "child", "type": ["null", "Tree"]},
    ],
}
NEWER: dict[str, Any] = {
    **TREE,
    "fields": [*TREE["fields"][:1], {"name": "colour", "type": "string", "default": ""}, *TREE["fields"][1:]],
}
MEGABYTE = 1_000_000
GOOD = 200
SUBJECT = "malicious-value"
BILLION = b"\x80\xa8\xd6\xb9\x07"
LENGTH_MAX = b"\xfe\xff\xff\xff\x0f"
TAIL = b"\0\0\0\0"
"""Empty weights, gaps and names, and no child."""


def malicious_payloads(first: int, newer_body: bytes) -> dict[str, tuple[bytes, str]]:
    """Payloads and their expected reasons, by name."""
    head = frame(first, b"\2")
    return {
        "an array of a billion": (head + b"\0" + BILLION, "TRUNCATED"),
        "a billion nulls": (head + b"\0\0" + BILLION + b"\0\0\0", "INVALID_VALUE"),
        "a map of a billion": (head + b"\0\0\0" + BILLION, "TRUNCATED"),
        "a string of 2 GB": (head + LENGTH_MAX + b"a" * 50, "TRUNCATED"),
        "a key of 2 GB": (head + b"\0\0\0\2" + LENGTH_MAX + b"a" * 50, "TRUNCATED"),
        "a negative length": (head + b"\1" + TAIL, "CORRUPT"),
        "records in records": (frame(first, (b"\2\0\0\0\0\2") * 20_000 + b"\2\0" + TAIL), "TOO_DEEP"),
        "a megabyte of 0xFF": (b"\xff" * (MEGABYTE * 9 // 10), "BAD_MAGIC"),
        "a framed megabyte of 0xFF": (frame(first, b"\xff" * (MEGABYTE * 9 // 10)), "CORRUPT"),
        "a megabyte of zeros left over": (frame(first, bytes(MEGABYTE * 9 // 10)), "TRAILING_BYTES"),
        "invalid UTF-8": (head + b"\4\xc3\x28" + TAIL, "CORRUPT"),
        "a newer body under an older id": (frame(first, newer_body), "TRUNCATED"),
        "an unknown id": (frame(4_000_000_000, b"\2\0" + TAIL), "UNKNOWN_SCHEMA"),
        "an empty payload": (b"", "TOO_SHORT"),
    }


@pytest.fixture(scope="module")
def rows(registry: HeadgateRegistry) -> list[tuple[bytes, str | None, int | None]]:
    """Payload, expected reason and expected id. Good payloads are in between."""
    with RegistryClient(registry.url) as client:
        first = registered(client, SUBJECT, TREE)
        registered(client, SUBJECT, NEWER)
    empty: dict[str, Any] = {"weights": [], "gaps": [], "names": {}, "child": None}
    encode, encode_newer = Encoder(parse(json.dumps(TREE))).encode, Encoder(parse(json.dumps(NEWER))).encode
    bad = [*malicious_payloads(first, encode_newer({"id": 1, "colour": "red", "label": "x" * 9, **empty})).values()]
    out: list[tuple[bytes, str | None, int | None]] = []
    for number in range(GOOD):
        out.append((frame(first, encode({"id": number, "label": f"good {number}", **empty})), None, number))
        if number % 10 == 5 and bad:
            payload, reason = bad.pop()
            out.append((payload, reason, None))
    assert not bad
    return out


def outcomes(decoded: DataFrame) -> list[tuple[str | None, int | None]]:
    return [(row["reason"], row["id"]) for row in decoded.orderBy("row").select("reason", "value.id").collect()]


def expected(rows: list[tuple[bytes, str | None, int | None]]) -> list[tuple[str | None, int | None]]:
    return [(reason, number) for _, reason, number in rows]


def as_frame(spark: SparkSession, rows: list[tuple[bytes, str | None, int | None]]) -> DataFrame:
    numbered = [(number, payload) for number, (payload, _, _) in enumerate(rows)]
    return spark.createDataFrame(numbered, "row long, value binary")


def test_malicious_payloads_in_a_dataframe_affect_only_their_own_rows(
    spark: SparkSession, registry: HeadgateRegistry, rows: list[tuple[bytes, str | None, int | None]]
) -> None:
    decoded = decode_frame(as_frame(spark, rows), SUBJECT, registry=registry.url)
    assert outcomes(decoded) == expected(rows)
    raw = {row["row"]: row["raw"] for row in decoded.select("row", "raw").collect()}
    for number, (payload, reason, _) in enumerate(rows):
        assert raw[number] == (None if reason is None else payload), number


def test_malicious_payloads_in_a_column_affect_only_their_own_rows(
    spark: SparkSession, registry: HeadgateRegistry, rows: list[tuple[bytes, str | None, int | None]]
) -> None:
    column = from_registry_avro("value", SUBJECT, registry=registry.url, on_poison="NULL")
    decoded = as_frame(spark, rows).select("row", column.alias("decoded")).select("row", "decoded.*")
    assert outcomes(decoded) == expected(rows)


def test_malicious_payloads_in_a_topic_affect_only_their_own_rows(
    spark: SparkSession,
    registry: HeadgateRegistry,
    headgate_broker: HeadgateBroker,
    rows: list[tuple[bytes, str | None, int | None]],
) -> None:
    create_topic(headgate_broker.address, "malicious")
    produce(headgate_broker.address, "malicious", [payload for payload, _, _ in rows])
    source = (
        spark.read.format("headgate")
        .option("bootstrap.servers", headgate_broker.address)
        .option("registry.url", registry.url)
        .option("subscribe", "malicious")
        .option("subject", SUBJECT)
        .load()
    )
    assert outcomes(source.withColumn("row", F.col("offset"))) == expected(rows)
    good, poison = decode_topic(source)
    assert good.count() == GOOD
    letters = {row["offset"]: row for row in poison.collect()}
    assert {offset: (bytes(row["raw"]), row["reason"]) for offset, row in letters.items()} == {
        offset: (payload, reason) for offset, (payload, reason, _) in enumerate(rows) if reason is not None
    }
