"""All rows of the table of errors in docs/wire-format.md, byte by byte."""

import json
from typing import Any

import pytest

from headgate.serdes.avro import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX, Decoder, parse
from headgate.serdes.outcome import Poison, Reason

REST = b"\x00" * 8


def decoder(writer: Any, reader: Any = None) -> Decoder:
    return Decoder(parse(json.dumps(writer)), None if reader is None else parse(json.dumps(reader)))


def reason(body: bytes, writer: Any, reader: Any = None) -> Reason | None:
    outcome = decoder(writer, reader).decode(body)
    return outcome.reason if isinstance(outcome, Poison) else None


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]}


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 3}
DECIMAL = logical("bytes", "decimal", precision=3, scale=1)
BIG = b"\xff" * 9 + b"\x01"  # -2**63 as a varint
HUGE_COUNT = b"\xfe" + b"\xff" * 8 + b"\x01"  # 2**63 - 1


@pytest.mark.parametrize(
    ("schema", "body", "expected"),
    [
        ("int", b"", Reason.TRUNCATED),
        ("int", b"\x80", Reason.TRUNCATED),
        ("int", b"\x80\x80\x80\x80", Reason.TRUNCATED),
        ("int", b"\xff\xff\xff\xff\x0f", None),
        ("int", b"\xff\xff\xff\xff\x10", Reason.CORRUPT),
        ("int", b"\x80\x80\x80\x80\x80", Reason.CORRUPT),
        ("int", b"\x80\x80\x80\x80\x80\x00", Reason.CORRUPT),
        ("int", b"\x80\x00", None),
        ("long", BIG, None),
        ("long", b"\xff" * 9 + b"\x02", Reason.CORRUPT),
        ("long", b"\x80" * 9, Reason.TRUNCATED),
        ("long", b"\x80" * 10, Reason.CORRUPT),
        ("boolean", b"", Reason.TRUNCATED),
        ("boolean", b"\x02", Reason.CORRUPT),
        ("boolean", b"\x07", Reason.CORRUPT),
        ("float", b"\x00\x00\x00", Reason.TRUNCATED),
        ("double", b"\x00" * 7, Reason.TRUNCATED),
        ("bytes", b"\x01", Reason.CORRUPT),
        ("bytes", b"\x04a", Reason.TRUNCATED),
        ("bytes", HUGE_COUNT, Reason.TRUNCATED),
        ("string", b"\x01", Reason.CORRUPT),
        ("string", b"\x06ab", Reason.TRUNCATED),
        ("string", b"\x04\xc3\x28", Reason.CORRUPT),
        ("string", b"\x06\xed\xa0\x80", Reason.CORRUPT),
        ("string", b"\x04\xc0\x80", Reason.CORRUPT),
        ("string", b"\x02ab", Reason.TRAILING_BYTES),
        (FIXED, b"ab", Reason.TRUNCATED),
        (ENUM, b"\x01", Reason.CORRUPT),
        (ENUM, b"\x04", Reason.CORRUPT),
        (ENUM, b"\x80\x80\x80\x80\x80\x80\x00", None),
        (["null", "int"], b"\x01", Reason.CORRUPT),
        (["null", "int"], b"\x04", Reason.CORRUPT),
        (["null", "int"], b"\x02", Reason.TRUNCATED),
        ([], b"\x00", Reason.CORRUPT),
        (array("int"), b"", Reason.TRUNCATED),
        (array("int"), b"\x02\x02", Reason.TRUNCATED),
        (array("int"), b"\x06\x02\x02", Reason.TRUNCATED),
        (array("int"), HUGE_COUNT + REST, Reason.TRUNCATED),
        (array("int"), BIG + b"\x02" + REST, Reason.TRUNCATED),
        (array("int"), b"\x01\x02\x02\x00", None),
        (array("int"), b"\x01\x04\x02\x00", Reason.CORRUPT),
        (array("int"), b"\x01\x00\x02\x00", Reason.CORRUPT),
        (array("int"), b"\x01\x01\x02\x00", Reason.CORRUPT),
        (array("int"), b"\x01\x20\x02\x00", Reason.TRUNCATED),
        (array("null"), b"\x80\x40\x00", None),  # 4096 items
        (array("null"), b"\x82\x40\x00", Reason.INVALID_VALUE),
        (array("null"), b"\x80\x40\x02\x00", Reason.INVALID_VALUE),
        (array("null"), HUGE_COUNT + b"\x00", Reason.INVALID_VALUE),
        (array(record()), b"\x82\x40\x00", Reason.INVALID_VALUE),
        (array({"type": "fixed", "name": "Z", "size": 0}), b"\x82\x40\x00", Reason.INVALID_VALUE),
        (array(array("null")), b"\x04\x80\x40\x00\x02\x00\x00", Reason.INVALID_VALUE),
        ({"type": "map", "values": "null"}, HUGE_COUNT + REST, Reason.TRUNCATED),
        ({"type": "map", "values": "int"}, b"\x02\x01\x00\x00", Reason.CORRUPT),
        ({"type": "map", "values": "int"}, b"\x02\x02\xff\x02\x00", Reason.CORRUPT),
        ({"type": "map", "values": "int"}, b"\x02\x02a\x02\x00", None),
        (DECIMAL, b"\x00", Reason.INVALID_VALUE),
        (DECIMAL, b"\x04\x03\xe7", None),
        (DECIMAL, b"\x04\x03\xe8", Reason.INVALID_VALUE),
        (DECIMAL, b"\x04\xfc\x19", None),
        (DECIMAL, b"\x04\xfc\x18", Reason.INVALID_VALUE),
        (logical("string", "uuid"), b"\x02x", Reason.INVALID_VALUE),
        (logical("string", "uuid"), b"\x40" + b"0" * 32, Reason.INVALID_VALUE),
        (logical("int", "time-millis"), b"\x01", Reason.INVALID_VALUE),
        (logical("int", "time-millis"), b"\x80\xf0\xb2\x52", Reason.INVALID_VALUE),
        (logical("int", "time-millis"), b"\xfe\xef\xb2\x52", None),
        (logical("long", "timestamp-millis"), BIG, Reason.INVALID_VALUE),
        (logical("long", "local-timestamp-micros"), BIG, Reason.INVALID_VALUE),
        (logical("long", "timestamp-nanos"), BIG, None),
        (logical("int", "date"), b"\xff\xff\xff\xff\x0f", Reason.INVALID_VALUE),
    ],
)
def test_a_body_has_the_reason_of_its_first_error(schema: Any, body: bytes, expected: Reason | None) -> None:
    assert reason(body, schema) == expected


def test_the_first_error_in_the_writers_order_wins() -> None:
    assert reason(b"\x02", record("boolean", "string")) == Reason.CORRUPT
    assert reason(b"\x01\x06ab", record("boolean", "string")) == Reason.TRUNCATED
    assert reason(b"\x01\x02\xff\x00", record("boolean", "string")) == Reason.CORRUPT


@pytest.mark.parametrize("reads", [True, False])
def test_depth_is_limited_in_decoded_and_skipped_fields(reads: bool) -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    schema, reader = (node, node) if reads else (record(node), record())
    above = 0 if reads else 1
    fits = b"\x02" * (DEPTH_MAX - 1 - above) + b"\x00"
    assert reason(fits, schema, reader) is None
    assert reason(b"\x02" + fits, schema, reader) == Reason.TOO_DEEP


def test_a_schema_deeper_than_the_limit_is_too_deep() -> None:
    schema: Any = "int"
    for _ in range(150):
        schema = array(schema)
    assert reason(b"\x00", schema) is None
    assert reason(b"\x02" * 160, schema) == Reason.TOO_DEEP


def test_an_endlessly_recursive_record_is_too_deep() -> None:
    assert reason(b"", {"type": "record", "name": "N", "fields": [{"name": "n", "type": "N"}]}) == Reason.TOO_DEEP


def test_a_skipped_field_is_checked_as_far_as_necessary() -> None:
    def skipped(field: Any, body: bytes) -> Reason | None:
        return reason(body, record(field), record())

    assert skipped("string", b"\x02\xff") is None
    assert skipped(DECIMAL, b"\x00") is None
    assert skipped({"type": "map", "values": "int"}, b"\x02\x02\xff\x02\x00") is None
    assert skipped("boolean", b"\x02") == Reason.CORRUPT
    assert skipped(ENUM, b"\x04") == Reason.CORRUPT
    assert skipped(["null"], b"\x02") == Reason.CORRUPT
    assert skipped("int", b"\xff\xff\xff\xff\x10") == Reason.CORRUPT
    assert skipped(FIXED, b"a") == Reason.TRUNCATED
    assert skipped(array("int"), b"\x01\x04\x02\x00") == Reason.CORRUPT
    assert skipped(array("null"), b"\x82\x40\x00") == Reason.INVALID_VALUE
    assert skipped(record("string", name="S"), b"\x01") == Reason.CORRUPT


def test_the_limit_of_zero_size_items_applies_to_the_whole_body() -> None:
    half = ZERO_SIZE_ITEMS_MAX // 2
    count = bytes([half * 2 & 0x7F | 0x80, half * 2 >> 7])
    two = record(array("null"), array("null"))
    assert reason((count + b"\x00") * 2, two) is None
    assert reason(count + b"\x02\x00" + count + b"\x00", two) == Reason.INVALID_VALUE


def test_an_error_contains_its_path() -> None:
    schema = record(array(record({"type": "map", "values": "boolean"}, name="S")))
    outcome = decoder(schema).decode(b"\x04\x00\x02\x02k\x05")
    assert isinstance(outcome, Poison)
    assert outcome.detail == "f0[1].f0['k']: a boolean of 5 at 5"
    assert outcome.raw == b"\x04\x00\x02\x02k\x05"
