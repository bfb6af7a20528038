"""Every Avro type in Spark, compared with fastavro on the same bytes."""

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pytest

from headgate.serdes.framing import frame
from headgate.spark_udfs import decode_frame, encode_frame, from_registry_avro
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import frame_of, register, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = {"type": "long"}
INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "Inner"]}],
}
PLACE = {
    "type": "record",
    "name": "P",
    "fields": [{"name": "t", "type": {"type": "int", "logicalType": "time-millis"}}],
}

FIELDS: dict[str, tuple[Any, str, list[Any]]] = {
    "nothing": ("null", "void", [None, None]),
    "flag": ("boolean", "boolean", [True, False]),
    "small": ("int", "int", [-(2**31), 2**31 - 1]),
    "large": ("long", "bigint", [-(2**63), 2**63 - 1]),
    "single": ("float", "float", [1.5, -0.0]),
    "double": ("double", "double", [1e308, float("inf")]),
    "raw": ("bytes", "binary", [b"", b"\x00\xff"]),
    "text": ("string", "string", ["", "größe 🎉"]),
    "colour": ({"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}, "string", ["RED", "BLUE"]),
    "fixed": ({"type": "fixed", "name": "Two", "size": 2}, "binary", [b"ab", b"\0\0"]),
    "money": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "decimal(9,2)",
        [Decimal("-1.25"), Decimal("9999999.99")],
    ),
    "fixed_money": (
        {"type": "fixed", "name": "M", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 10},
        "decimal(38,10)",
        [Decimal("1.0000000001"), Decimal("-3")],
    ),
    "huge": (
        {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 3},
        "string",
        [Decimal("123456789012345678901234567890123456789012345.678"), Decimal("-1.500")],
    ),
    "day": ({"type": "int", "logicalType": "date"}, "date", [date(1, 1, 1), date(9999, 12, 31)]),
    "milli_time": ({"type": "int", "logicalType": "time-millis"}, "int", [time(0), time(23, 59, 59, 999000)]),
    "micro_time": ({**LONG, "logicalType": "time-micros"}, "bigint", [time(0), time(23, 59, 59, 999999)]),
    "milli": (
        {**LONG, "logicalType": "timestamp-millis"},
        "timestamp",
        [datetime(1900, 1, 2, 3, 4, 5, 6000, UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    ),
    "micro": (
        {**LONG, "logicalType": "timestamp-micros"},
        "timestamp",
        [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    ),
    "local_milli": (
        {**LONG, "logicalType": "local-timestamp-millis"},
        "timestamp_ntz",
        [datetime(1900, 1, 2, 3, 4, 5, 6000), datetime(2026, 1, 1)],
    ),
    "local_micro": (
        {**LONG, "logicalType": "local-timestamp-micros"},
        "timestamp_ntz",
        [datetime(1900, 1, 2, 3, 4, 5, 6), datetime(2026, 1, 1)],
    ),
    "uuid": (
        {"type": "string", "logicalType": "uuid"},
        "string",
        [UUID(int=1), UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")],
    ),
    "maybe": (["null", "string"], "string", [None, "x"]),
    "number": (["int", "long"], "bigint", [1, 2**40]),
    "real": (["null", "float", "double"], "double", [None, 0.5]),
    "either": (["null", "int", "string"], "struct<member0:int,member1:string>", [5, "x"]),
    "list": ({"type": "array", "items": ["null", "long"]}, "array<bigint>", [[], [1, None, 3]]),
    "lists": (
        {"type": "array", "items": {"type": "array", "items": "string"}}, "array<array<string>>", [[[]], [["a"]]]
    ),
    "map": ({"type": "map", "values": "double"}, "map<string,double>", [{}, {"a": 1.0, "b": 2.0}]),
    "places": (
        {"type": "map", "values": PLACE},
        "map<string,struct<t:int>>",
        [{}, {"a": {"t": time(0, 0, 1)}}],
    ),
    "inner": (
        INNER,
        "struct<x:int,y:struct<x:int,y:struct<x:int,y:struct<x:int,y:struct<x:int>>>>>",
        [{"x": 1, "y": None}, {"x": 1, "y": {"x": 2, "y": None}}],
    ),
    "empty": ({"type": "record", "name": "Empty", "fields": []}, "struct<>", [{}, {}]),
}  # fmt: skip
SCHEMA = {
    "type": "record",
    "name": "Everything",
    "fields": [{"name": name, "type": kind} for name, (kind, _, _) in FIELDS.items()],
}
ROWS = [{name: values[row] for name, (_, _, values) in FIELDS.items()} for row in range(2)]


def by_fastavro(body: bytes) -> dict[str, Any]:
    found = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(json.loads(json.dumps(SCHEMA))), None)
    assert isinstance(found, dict)
    return found


def as_spark(name: str, value: Any) -> Any:
    """The value of fastavro in Spark types, as listed in `executor.spark_types`."""
    if value is None:
        return None
    if isinstance(value, time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return micros if name == "micro_time" else micros // 1000
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(value, UUID) or name == "huge":
        return str(value)
    if name == "either":
        return {
            "member0": value if isinstance(value, int) else None,
            "member1": value if isinstance(value, str) else None,
        }
    if name == "inner":
        return _inner(value, 5)
    if isinstance(value, dict):
        return {key: as_spark(name, inner) for key, inner in value.items()}
    return [as_spark(name, inner) for inner in value] if isinstance(value, list) else value


def _inner(value: Any, levels: int) -> Any:
    if value is None:
        return None
    return {"x": value["x"], **({"y": _inner(value["y"], levels - 1)} if levels > 1 else {})}


@pytest.fixture(scope="module")
def schema_id(registry: HeadgateRegistry) -> int:
    return register(registry, "everything-value", SCHEMA)[0]


@pytest.fixture(scope="module")
def payloads(schema_id: int) -> list[bytes]:
    rows: list[bytes] = []
    for row in ROWS:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(SCHEMA))), row)
        rows.append(frame(schema_id, out.getvalue()))
    return rows


@pytest.mark.parametrize("form", ["frame", "column"])
def test_every_avro_type_has_the_expected_spark_type_and_value(
    spark: "SparkSession", registry: HeadgateRegistry, payloads: list[bytes], form: str
) -> None:
    df = frame_of(spark, [*payloads, b"x"])
    if form == "frame":
        decoded = decode_frame(df, "everything-value", registry=registry.url)
    else:
        decoded = df.select("n", from_registry_avro("value", "everything-value", registry=registry.url).alias("d"))
        decoded = decoded.select("n", "d.*")
    kinds = {field.name: field.dataType.simpleString() for field in decoded.schema["value"].dataType}  # type: ignore[attr-defined]  # a struct's fields
    assert kinds == {name: kind for name, (_, kind, _) in FIELDS.items()}
    rows = rows_of(decoded)
    assert [row.reason for row in rows] == [None, None, "TOO_SHORT"]
    for row, payload in zip(rows, payloads, strict=False):
        expected = {name: as_spark(name, value) for name, value in by_fastavro(payload[5:]).items()}
        assert row.value.asDict(recursive=True) == expected


def test_decoded_values_are_encoded_to_the_same_bytes(
    spark: "SparkSession", registry: HeadgateRegistry, payloads: list[bytes], schema_id: int
) -> None:
    df = decode_frame(frame_of(spark, payloads), "everything-value", registry=registry.url)
    back = encode_frame(df.select("n", "value"), "everything-value", registry=registry.url)
    again = decode_frame(back, "everything-value", registry=registry.url)
    assert rows_of(again.select("n", "value", "reason")) == (rows_of(df.select("n", "value", "reason")))
    # A union of int and long is one column, so the long branch is written. All other bytes are equal.
    assert [len(row.value) for row in rows_of(back)] == [len(payload) for payload in payloads]


@pytest.mark.parametrize(
    ("schema", "value", "kind"),
    [("string", "x", "string"), ("long", 5, "bigint"), ({"type": "array", "items": "int"}, [1, 2], "array<int>")],
)
def test_schemas_other_than_records_are_decoded(
    spark: "SparkSession", registry: HeadgateRegistry, schema: Any, value: Any, kind: str
) -> None:
    subject = f"bare-{kind}-value"
    (number,) = register(registry, subject, schema)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    df = decode_frame(frame_of(spark, [frame(number, out.getvalue()), b""]), subject, registry=registry.url)
    assert df.schema["value"].dataType.simpleString() == kind
    assert [row.value for row in rows_of(df)] == [value, None]


def test_nanoseconds_are_rounded_down_and_durations_are_structs(
    spark: "SparkSession", registry: HeadgateRegistry
) -> None:
    schema = {
        "type": "record",
        "name": "Fine",
        "fields": [
            {"name": "at", "type": {**LONG, "logicalType": "timestamp-nanos"}},
            {"name": "local", "type": {**LONG, "logicalType": "local-timestamp-nanos"}},
            {"name": "span", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
        ],
    }
    (number,) = register(registry, "fine-value", schema)
    from headgate.serdes.avro import Encoder, parse

    body = Encoder(parse('"long"')).encode(-1) + Encoder(parse('"long"')).encode(1999)
    span = (2**32 - 1).to_bytes(4, "little") + (2).to_bytes(4, "little") + (3).to_bytes(4, "little")
    df = decode_frame(frame_of(spark, [frame(number, body + span)]), "fine-value", registry=registry.url)
    row = df.collect()[0].value.asDict(recursive=True)
    assert row == {
        "at": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "local": datetime(1970, 1, 1, 0, 0, 0, 1),
        "span": {"months": 2**32 - 1, "days": 2, "milliseconds": 3},
    }
