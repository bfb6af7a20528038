"""`decode_frame` and `decode_topic` with every kind of poison, and consistent counts."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from headgate.spark_udfs import FrameError, decode_frame, decode_topic, part
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import CUSTOMER_V1, CUSTOMER_V2, encoded, frame_of, register, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "parent", "type": ["null", "Event"], "default": None},
    ],
}
KIND_ONLY: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [{"name": "id", "type": {"type": "map", "values": "long"}}],
}
"""Not compatible with `Event`."""


def long(number: int) -> bytes:
    return Encoder(parse('"long"')).encode(number)


def poison(schema_id: int, unreadable_id: int) -> dict[str, tuple[bytes | None, str]]:
    """Payloads for every reason, including those that crash other decoders."""
    good = encoded(EVENT, {"id": 1, "note": "x", "kind": "A", "price": b"\x07", "tags": [], "parent": None}, schema_id)

    def body(*parts: bytes) -> bytes:
        return frame(schema_id, b"".join(parts))

    head = long(1) + long(0)
    return {
        "no payload": (None, "NULL"),
        "an empty one": (b"", "TOO_SHORT"),
        "four bytes": (good[:4], "TOO_SHORT"),
        "another magic byte": (b"\x01" + good[1:], "BAD_MAGIC"),
        "text": (b"hello, world", "BAD_MAGIC"),
        "an unknown id": (frame(9_999, good[5:]), "UNKNOWN_SCHEMA"),
        "an id of all ones": (frame(2**32 - 1, good[5:]), "UNKNOWN_SCHEMA"),
        "half of a body": (good[:-3], "TRUNCATED"),
        "a frame alone": (good[:5], "TRUNCATED"),
        "bytes left over": (good + b"\0", "TRAILING_BYTES"),
        "an unreadable schema": (frame(unreadable_id, b"\0"), "UNRESOLVABLE"),
        "a decimal of too many digits": (body(head, long(0), long(2), b"\x7f\xff", long(0), long(0)), "INVALID_VALUE"),
        "an array of a billion items": (body(head, long(0), long(1), b"\7", long(10**9)), "TRUNCATED"),
        "a string of two gigabytes": (body(long(1), long(1), long(2**31)), "TRUNCATED"),
        "nested five thousand deep": (
            body((long(1) + long(0) + long(0) + long(1) + b"\7" + long(0) + long(1)) * 5000),
            "TOO_DEEP",
        ),
        "a megabyte of 0xFF": (body(b"\xff" * 1_000_000), "CORRUPT"),
        "invalid UTF-8": (body(long(1), long(1), long(2), b"\xff\xfe"), "CORRUPT"),
        "a symbol that there is not": (body(head, long(7)), "CORRUPT"),
    }


@pytest.fixture(scope="module")
def event_id(registry: HeadgateRegistry) -> int:
    return register(registry, "events-value", EVENT)[0]


@pytest.fixture(scope="module")
def unreadable_id(registry: HeadgateRegistry) -> int:
    return register(registry, "unreadable-value", KIND_ONLY)[0]


def event(number: int, schema_id: int) -> bytes:
    value = {
        "id": number,
        "note": None,
        "kind": "B",
        "price": b"\x01\x00",
        "tags": ["a"] * (number % 3),
        "parent": None,
    }
    return encoded(EVENT, value, schema_id)


def topic_frame(spark: "SparkSession", payloads: list[bytes | None]) -> "DataFrame":
    """A DataFrame with the columns of Spark's Kafka source, including headers."""
    rows = [
        (
            bytearray(b"k%d" % number),
            None if payload is None else bytearray(payload),
            "events",
            number % 2,
            number,
            datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
            0,
            [("trace", bytearray(b"%d" % number))],
        )
        for number, payload in enumerate(payloads)
    ]
    kinds = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
        "headers array<struct<key:string,value:binary>>"
    )
    return spark.createDataFrame(rows, kinds).repartition(3)


def test_every_kind_of_poison_becomes_a_dead_letter_and_other_rows_are_decoded(
    spark: "SparkSession", registry: HeadgateRegistry, event_id: int, unreadable_id: int
) -> None:
    bad = poison(event_id, unreadable_id)
    payloads: list[bytes | None] = []
    for number, (payload, _) in enumerate(bad.values()):
        payloads += [event(number, event_id), payload]
    good, letters = decode_topic(topic_frame(spark, payloads), subject="events-value", registry=registry.url)
    decoded = rows_of(good, "offset")
    assert [row.value.id for row in decoded] == list(range(len(bad)))
    assert {row.schema_id for row in decoded} == {event_id}
    assert "reason" not in good.columns

    found = rows_of(letters, "offset")
    assert len(found) + len(decoded) == len(payloads)
    assert [row.reason for row in found] == [reason for _, reason in bad.values()]
    for row, (payload, _) in zip(found, bad.values(), strict=True):
        assert row.raw == (None if payload is None else bytearray(payload))
        assert (row.topic, row.partition, row.key) == ("events", row.offset % 2, bytearray(b"k%d" % row.offset))
        assert [tuple(header) for header in row.headers] == [("trace", bytearray(b"%d" % row.offset))]
        assert row.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678000)
        assert row.detail
    assert letters.columns == [
        "topic", "partition", "offset", "timestamp", "key", "headers", "raw", "reason", "detail", "schema_id",
    ]  # fmt: skip
    by_reason = {row.reason: row for row in found}
    assert by_reason["TRAILING_BYTES"].schema_id == event_id
    assert "1 bytes left over" in by_reason["TRAILING_BYTES"].detail


def test_a_body_with_the_schema_id_of_another_version_is_poison(
    spark: "SparkSession", registry: HeadgateRegistry
) -> None:
    ids = register(registry, "swapped-value", CUSTOMER_V1)
    body = encoded(CUSTOMER_V2, {"id": 2**40, "fullname": "Bob", "email": None}, ids[0])
    df = decode_frame(frame_of(spark, [body]), "swapped-value", registry=registry.url)
    assert df.collect()[0].reason in ("CORRUPT", "TRUNCATED", "TRAILING_BYTES")


def test_batches_of_only_poison_or_no_rows(spark: "SparkSession", registry: HeadgateRegistry, event_id: int) -> None:
    garbage = decode_frame(frame_of(spark, [b"x", None, b""] * 10, 7), "events-value", registry=registry.url)
    assert {(row.reason, row["count"]) for row in garbage.groupBy("reason").count().collect()} == {
        ("TOO_SHORT", 20), ("NULL", 10),
    }  # fmt: skip
    none = decode_frame(frame_of(spark, [event(1, event_id)]).where("n < 0"), "events-value", registry=registry.url)
    assert none.collect() == []
    few = decode_frame(frame_of(spark, [event(1, event_id)], 5), "events-value", registry=registry.url)
    assert [row.value.id for row in few.collect()] == [1]


def test_batches_larger_than_a_piece_are_decoded(
    spark: "SparkSession", registry: HeadgateRegistry, event_id: int
) -> None:
    def wide(number: int) -> bytes:
        value = {"id": number, "note": "x" * 1_500_000, "kind": "A", "price": b"\1", "tags": [], "parent": None}
        return encoded(EVENT, value, event_id)

    payloads = [wide(number) if number % 2 else b"\0" * 1_000_000 for number in range(16)]
    df = decode_frame(frame_of(spark, payloads, 1), "events-value", registry=registry.url, fields=["id"])
    rows = rows_of(df)
    assert [row.value.id if row.value else None for row in rows] == [n if n % 2 else None for n in range(16)]
    assert [row.n for row in rows] == list(range(16))


def test_only_kept_columns_are_returned(spark: "SparkSession", registry: HeadgateRegistry, event_id: int) -> None:
    df = topic_frame(spark, [event(1, event_id), b"x"])
    assert decode_frame(df, "events-value", registry=registry.url, keep=["offset"]).columns == [
        "offset", "value", "reason", "schema_id", "raw",
    ]  # fmt: skip
    bare = decode_frame(df, "events-value", registry=registry.url, keep=[], on_poison="NULL", fields=["id", "kind"])
    assert bare.columns == ["value", "reason", "schema_id"]
    assert sorted((row.value.kind if row.value else row.reason) for row in bare.collect()) == ["B", "TOO_SHORT"]


def test_flat_returns_fields_as_columns(spark: "SparkSession", registry: HeadgateRegistry, event_id: int) -> None:
    df = frame_of(spark, [event(1, event_id), b"x", event(2, event_id)])
    flat = decode_frame(df, "events-value", registry=registry.url, fields=["id", "kind"], flat=True, details=True)
    assert flat.columns == ["n", "id", "kind", "reason", "schema_id", "raw", "detail"]
    assert [(row.id, row.kind, row.reason) for row in rows_of(flat)] == [
        (1, "B", None), (None, None, "TOO_SHORT"), (2, "B", None),
    ]  # fmt: skip
    with pytest.raises(FrameError, match="duplicate columns: ID"):
        decode_frame(df.withColumnRenamed("n", "ID"), "events-value", registry=registry.url, flat=True)
    (number,) = register(registry, "flat-text-value", "string")
    assert number
    with pytest.raises(FrameError, match="needs a record schema"):
        decode_frame(df, "flat-text-value", registry=registry.url, flat=True)


def test_kept_columns_of_every_type_are_unchanged(
    spark: "SparkSession", registry: HeadgateRegistry, event_id: int
) -> None:
    kinds = (
        "CAST(1 AS tinyint) a, CAST(2 AS smallint) b, 1.5BD c, DATE'2026-01-02' d, TIMESTAMP'2026-01-02 03:04:05' e, "
        "TIMESTAMP_NTZ'2026-01-02 03:04:05' f, array(1, null) g, map('x', named_struct('y', 1)) h, true i, "
        "CAST(null AS string) j, INTERVAL '1' DAY k, 'text' `odd name`"
    )
    plain = spark.sql(f"SELECT {kinds}, X'00' AS value")
    decoded = decode_frame(plain, "events-value", registry=registry.url)
    assert decoded.drop("value", "reason", "schema_id", "raw").collect() == plain.drop("value").collect()


def test_a_decoded_frame_is_only_split(spark: "SparkSession", registry: HeadgateRegistry, event_id: int) -> None:
    df = topic_frame(spark, [event(1, event_id), b"x", event(2, event_id)])
    decoded = decode_frame(df, "events-value", registry=registry.url)
    good, letters = decode_topic(decoded)
    assert sorted(row.value.id for row in good.collect()) == [1, 2]
    (letter,) = letters.collect()
    assert (letter.reason, letter.detail, letter.raw) == (
        "TOO_SHORT",
        "the payload is shorter than its frame",
        bytearray(b"x"),
    )


def test_dead_letters_of_a_table_keep_its_columns(
    spark: "SparkSession", registry: HeadgateRegistry, event_id: int
) -> None:
    letters = decode_topic(frame_of(spark, [b"x", event(1, event_id)]), "events-value", registry=registry.url).poison
    (letter,) = letters.collect()
    assert (letter.n, letter.topic, letter.offset, letter.headers, letter.reason) == (0, None, None, None, "TOO_SHORT")


def test_wrong_columns_are_reported(spark: "SparkSession", registry: HeadgateRegistry, event_id: int) -> None:
    df = frame_of(spark, [b"x"])
    with pytest.raises(FrameError, match="there is no column payload"):
        decode_frame(df, "events-value", column="payload", registry=registry.url)
    with pytest.raises(FrameError, match="is long, and must be binary"):
        decode_frame(df, "events-value", column="n", registry=registry.url)
    with pytest.raises(FrameError, match="duplicate columns: reason"):
        decode_frame(
            df.withColumn("Reason", df.n).withColumnRenamed("Reason", "reason"), "events-value", registry=registry.url
        )
    with pytest.raises(FrameError, match="no column m to keep"):
        decode_frame(df, "events-value", keep=["m"], registry=registry.url)
    with pytest.raises(FrameError, match="a decoded DataFrame has"):
        part(df)


def test_schema_ids_in_record_headers_are_used(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    from headgate.serdes import RegistryClient, Serializer, SerializerOptions, avro_schema
    from tests.unit.spark_udfs.plans import text_of

    headers: list[tuple[str, bytes]] = []
    with RegistryClient(registry.url) as client:
        serializer = Serializer(client, avro_schema(text_of(CUSTOMER_V1)), SerializerOptions(id_in_header=True))
        value = {"id": 1, "fullname": "Ada", "fax": "1"}
        body = serializer.serialize(value, topic="headed", headers=headers)
    assert body is not None
    rows = [(bytearray(body), [(key, bytearray(content)) for key, content in headers])]
    df = spark.createDataFrame(rows, "value binary, headers array<struct<key:string,value:binary>>")
    for decoded in (
        decode_frame(df, "headed-value", registry=registry.url),
        decode_frame(df, "headed-value", registry=registry.url, keep=[]),
    ):
        assert decoded.collect()[0].value.asDict() == value
