"""The Arrow types of Avro types, unions and defaults."""

import json
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas, SchemaTooLarge
from headgate.serdes.outcome import Reason
from tests.unit.columnar.generation import zigzag


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": schema} for field, schema in fields]}


def arrow_type(schema: Any, **options: Any) -> pa.DataType:
    return ColumnarDecoder(parse(json.dumps(schema)), FixedSchemas({}), **options).type


def decode(body: bytes, writer: Any, reader: Any = None, **options: Any) -> Any:
    decoder = ColumnarDecoder(
        parse(json.dumps(writer if reader is None else reader)), FixedSchemas({1: json.dumps(writer)}), **options
    )
    batch = decoder.decode(pa.array([b"\0\0\0\0\1" + body], pa.binary()))
    batch.values.validate(full=True)
    reason = batch.reasons[0].as_py()
    return Reason(reason) if reason else batch.values[0].as_py()


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


MEMBERS = pa.struct([("member0", pa.string()), ("member1", pa.int64())])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("null", pa.null()),
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        (fixed(7), pa.binary(7)),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        (logical("int", "date"), pa.date32()),
        (logical("int", "time-millis"), pa.time32("ms")),
        (logical("long", "time-micros"), pa.time64("us")),
        (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
        (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        (logical("long", "timestamp-nanos"), pa.timestamp("ns", "UTC")),
        (logical("long", "local-timestamp-millis"), pa.timestamp("ms")),
        (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
        (logical("long", "local-timestamp-nanos"), pa.timestamp("ns")),
        (logical("bytes", "decimal", precision=38, scale=3), pa.decimal128(38, 3)),
        (logical("bytes", "decimal", precision=39, scale=3), pa.decimal256(39, 3)),
        (logical("bytes", "decimal", precision=77, scale=3), pa.binary()),
        (fixed(4, logicalType="decimal", precision=9, scale=0), pa.decimal128(9, 0)),
        (fixed(40, logicalType="decimal", precision=90, scale=0), pa.binary(40)),
        (logical("string", "uuid"), pa.string()),
        (fixed(16, logicalType="uuid"), pa.string()),
        (
            fixed(12, logicalType="duration"),
            pa.struct([("months", pa.uint32()), ("days", pa.uint32()), ("milliseconds", pa.uint32())]),
        ),
        (logical("int", "no-such-type"), pa.int32()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32())),
        (record(("a", "int"), ("b", "string")), pa.struct([("a", pa.int32()), ("b", pa.string())])),
        (["null", "int"], pa.int32()),
        (["int"], pa.int32()),
        (["null"], pa.null()),
        (["int", "null", "long"], pa.int64()),
        (["double", "float"], pa.float64()),
        (["string", "null", "long"], MEMBERS),
        (["string", "long"], MEMBERS),
    ],
)
def test_every_avro_type_has_its_arrow_type(schema: Any, expected: pa.DataType) -> None:
    assert arrow_type(schema) == expected


@pytest.mark.parametrize(
    ("schema", "body", "expected"),
    [
        (logical("int", "date"), zigzag(19_000), date(2022, 1, 8)),
        (logical("int", "time-millis"), zigzag(1_500), time(0, 0, 1, 500_000)),
        (logical("long", "timestamp-millis"), zigzag(1_500), datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        (logical("bytes", "decimal", precision=5, scale=2), b"\4\xff\x85", Decimal("-1.23")),
        (fixed(16, logicalType="uuid"), bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (fixed(12, logicalType="duration"), struct.pack("<III", 1, 2, 2**32 - 1), (1, 2, 2**32 - 1)),
        ({"type": "map", "values": "int"}, b"\2\2a\6\0", [("a", 3)]),
        (["string", "null", "long"], b"\4\6", {"member0": None, "member1": 3}),
        (["string", "null", "long"], b"\2", None),
        (["int", "long"], b"\0\6", 3),
        (["float", "double"], b"\0" + struct.pack("<f", 1.5), 1.5),
    ],
)
def test_values_match_their_type(schema: Any, body: bytes, expected: Any) -> None:
    value = decode(body, record(("f", schema)))["f"]
    assert (tuple(value.values()) if isinstance(expected, tuple) else value) == expected


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("boolean", True, True),
        ("int", -5, -5),
        ("long", 2**40, 2**40),
        ("float", 1.5, 1.5),
        ("double", 1, 1.0),
        ("string", "é", "é"),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        (fixed(2), "\u0001\u00fe", b"\x01\xfe"),
        (fixed(16, logicalType="uuid"), "\u0000" * 16, "00000000-0000-0000-0000-000000000000"),
        (logical("bytes", "decimal", precision=4, scale=1), "\u00ff", Decimal("-0.1")),
        (logical("bytes", "decimal", precision=50, scale=1), "\u0001\u0000", Decimal("25.6")),
        (logical("int", "date"), 1, date(1970, 1, 2)),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, [[1, 2], [], [3]], [[1, 2], [], [3]]),
        ({"type": "map", "values": "string"}, {"a": "x", "b": ""}, [("a", "x"), ("b", "")]),
        (["null", "int"], None, None),
        (["int", "null"], 4, 4),
        (["string", "long"], "s", {"member0": "s", "member1": None}),
        (["float", "double"], 0.5, 0.5),
        (record(("x", ["null", "int"]), ("y", "string"), name="S"), {"x": None, "y": "z"}, {"x": None, "y": "z"}),
    ],
)
def test_a_field_that_the_writer_does_not_have_gets_its_default(schema: Any, default: Any, expected: Any) -> None:
    reader = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "f", "type": schema, "default": default}, {"name": "kept", "type": "int"}],
    }
    assert decode(b"\x0e", record(("kept", "int")), reader) == {"f": expected, "kept": 7}


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "v", "type": "int"}, {"name": "children", "type": {"type": "array", "items": "Tree"}}],
}


def test_a_recursive_record_has_the_requested_number_of_levels() -> None:
    inner = pa.struct([("v", pa.int32())])
    assert arrow_type(NODE, recursion_max=0) == inner
    assert arrow_type(NODE, recursion_max=1) == pa.struct([("v", pa.int32()), ("next", inner)])
    assert arrow_type(TREE, recursion_max=0) == inner


def test_a_value_below_the_last_level_is_too_deep_and_its_absence_is_not() -> None:
    two, three = b"\2\2\4\0", b"\2\2\4\2\6\0"
    assert decode(two, NODE, recursion_max=1) == {"v": 1, "next": {"v": 2}}
    assert decode(three, NODE, recursion_max=1) is Reason.TOO_DEEP
    assert decode(b"\2\0", TREE, recursion_max=0) == {"v": 1}
    assert decode(b"\2\2\2\0\0", TREE, recursion_max=0) is Reason.TOO_DEEP


def test_skipping_a_recursive_record_has_the_depth_limit_of_the_row_wise_decoder() -> None:
    writer = record(("node", NODE), ("last", "int"))
    reader = record(("last", "int"))
    ninety_nine = b"\2\2" * 98 + b"\2\0" + b"\x0e"
    hundred = b"\2\2" * 99 + b"\2\0" + b"\x0e"
    assert decode(ninety_nine, writer, reader) == {"last": 7}
    assert decode(hundred, writer, reader) is Reason.TOO_DEEP


def test_a_reader_with_too_many_columns_is_rejected() -> None:
    schema: Any = "int"
    for level in range(16):
        schema = record(("a", schema), ("b", f"L{level - 1}" if level else "int"), name=f"L{level}")
    with pytest.raises(SchemaTooLarge):
        arrow_type(schema)


def test_a_writer_whose_program_would_be_endless_is_unresolvable() -> None:
    """Each level has two writer records for one reader record, so the code doubles with each level."""
    writer: Any = "int"
    reader: Any = "int"
    for level in range(40):
        writer = [
            record(("x", writer), name=f"A{level}"),
            record(("x", f"A{level - 1}" if level else "int"), name=f"B{level}"),
        ]
        writer[1]["fields"][0]["type"] = [f"A{level - 1}", f"B{level - 1}"] if level else "int"
        reader = record(("x", reader), name=f"R{level}")
    assert decode(b"\0" * 50, writer, reader) is Reason.UNRESOLVABLE
