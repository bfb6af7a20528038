"""Schema resolution: the rules of the specification and Headgate's choices."""

import json
import struct
from decimal import Decimal
from typing import Any

import pytest

from headgate.serdes.avro import Decoder, Encoder, parse
from headgate.serdes.outcome import Poison, Reason


def read(value: Any, writer: Any, reader: Any) -> Any:
    body = Encoder(parse(json.dumps(writer))).encode(value)
    outcome = Decoder(parse(json.dumps(writer)), parse(json.dumps(reader))).decode(body)
    return outcome.reason if isinstance(outcome, Poison) else outcome


def static(writer: Any, reader: Any) -> Any:
    """The reason without reading the body."""
    outcome = Decoder(parse(json.dumps(writer)), parse(json.dumps(reader))).decode(b"\xff")
    return outcome.reason if isinstance(outcome, Poison) else outcome


def record(fields: list[Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def field(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": schema, **more}


def enum(symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "long", 7, 7),
        ("int", "double", 7, 7.0),
        ("long", "double", (1 << 53) + 1, float((1 << 53) + 1)),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"ab", "ab"),
        ("bytes", "string", b"\xff", Reason.CORRUPT),
        ("int", "string", 7, Reason.UNRESOLVABLE),
        ("long", "int", 7, Reason.UNRESOLVABLE),
        ("double", "float", 0.5, Reason.UNRESOLVABLE),
        (enum("ABC"), enum("CBA"), "A", "A"),
        (enum("ABC"), enum("AB"), "B", "B"),
        (enum("ABC"), enum("AB"), "C", Reason.UNRESOLVABLE),
        (enum("ABC"), enum("AB", default="A"), "C", "A"),
        (enum("ABC"), enum("ABC", "Other"), "C", Reason.UNRESOLVABLE),
        (enum("ABC"), enum("ABC", "Other", aliases=["E"]), "C", "C"),
        (enum("ABC"), enum("ABC", "ns.E"), "C", "C"),
        (["null", "int"], "int", 3, 3),
        (["null", "int"], "int", None, Reason.UNRESOLVABLE),
        ("int", ["null", "int"], 3, 3),
        ("int", ["null", "double", "long"], 3, 3.0),
        ("int", ["null", "string"], 3, Reason.UNRESOLVABLE),
        (["int", "string"], ["string", "long"], 3, 3),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "int"]}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_is_read_as_the_readers_type(writer: Any, reader: Any, value: Any, expected: Any) -> None:
    assert read(value, writer, reader) == expected


@pytest.mark.parametrize("value", [16_777_217, (1 << 54) + (1 << 30) + 1, (1 << 63) - 1, -(1 << 63), -33_554_435])
def test_a_long_becomes_the_nearest_float_in_one_rounding(value: int) -> None:
    got = read(value, "long", "float")
    around = [
        struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", got))[0] + d))[0] for d in (-1, 1)
    ]
    assert all(abs(int(got) - value) <= abs(int(other) - value) for other in around)


def test_fields_are_reordered_dropped_defaulted_and_renamed() -> None:
    writer = record([field("a", "int"), field("b", "string"), field("c", {"type": "array", "items": "string"})])
    reader = record([field("z", "string", default="?"), field("y", "long", aliases=["a"]), field("b", "string")])
    got = read({"a": 1, "b": "x", "c": ["p", "q"]}, writer, reader)
    assert got == {"z": "?", "y": 1, "b": "x"}
    assert list(got) == ["z", "y", "b"]


def test_a_name_has_precedence_over_an_alias() -> None:
    writer = record([field("a", "int"), field("b", "int")])
    reader = record([field("x", "int", aliases=["a", "b"]), field("a", "int")])
    assert read({"a": 1, "b": 2}, writer, reader) == {"x": 2, "a": 1}


def test_a_mutable_default_is_created_for_each_value() -> None:
    schema = parse(json.dumps(record([field("l", {"type": "array", "items": "int"}, default=[1])])))
    decoder = Decoder(parse(json.dumps(record([]))), schema)
    first, second = decoder.decode(b""), decoder.decode(b"")
    assert isinstance(first, dict)
    assert first == second == {"l": [1]}
    first["l"].append(2)
    assert second == {"l": [1]}


def test_defaults_take_the_readers_logical_type() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    assert read({}, record([]), record([field("d", decimal, default="\u0000\u00fa")])) == {"d": Decimal("2.50")}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (record([]), record([field("a", "int")])),
        (record([]), record([field("a", "int", default="x")])),
        (record([field("a", "int")]), record([field("a", "string")])),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
        (["null", "int"], "string"),
        ({"type": "fixed", "name": "F", "size": 3}, {"type": "fixed", "name": "F", "size": 4}),
        ({"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "time-millis"}),
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"}),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        ),
        (
            record([field("n", ["null", "R"]), field("a", "int")]),
            record([field("n", ["null", "R"]), field("a", "string")]),
        ),
        (record([]), record([field("n", "R", default={})])),
    ],
)
def test_an_unresolvable_pair_is_poison_before_the_body_is_read(writer: Any, reader: Any) -> None:
    assert static(writer, reader) == Reason.UNRESOLVABLE


def test_a_mismatch_below_a_branch_affects_only_rows_with_that_branch() -> None:
    inner_writer = {"type": "array", "items": record([field("a", "int")], "S")}
    inner_reader = {"type": "array", "items": record([field("a", "string")], "S")}
    writer, reader = record([field("u", ["null", inner_writer])]), record([field("u", ["null", inner_reader])])
    assert read({"u": None}, writer, reader) == {"u": None}
    # Even an empty array: the whole branch cannot be read.
    assert read({"u": []}, writer, reader) == Reason.UNRESOLVABLE


def test_precisions_of_decimals_may_differ_and_the_readers_applies() -> None:
    def decimal(precision: int) -> dict[str, Any]:
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 1}

    assert read(Decimal("12.5"), decimal(3), decimal(9)) == Decimal("12.5")
    assert read(Decimal("12.5"), decimal(9), decimal(2)) == Reason.INVALID_VALUE


def test_a_renamed_record_matches_if_it_is_the_only_record_of_the_union() -> None:
    writer, reader = record([field("a", "int")], "Old"), record([field("a", "int")], "New")
    assert read({"a": 1}, writer, ["null", reader]) == {"a": 1}
    other = record([field("a", "int")], "Newer")
    assert read({"a": 1}, writer, ["null", reader, other]) == Reason.UNRESOLVABLE
    assert read({"a": 1}, writer, ["null", reader, {**other, "aliases": ["Old"]}]) == {"a": 1}


def test_a_chain_of_records_longer_than_the_stack_is_resolved() -> None:
    texts = {"C0": '{"type": "record", "name": "C0", "fields": [{"name": "x", "type": "int"}]}'}
    for link in range(1, 3000):
        texts[f"C{link}"] = json.dumps(record([field("x", ["null", f"C{link - 1}"])], f"C{link}"))
    schema = parse('"C2999"', texts)
    outcome = Decoder(schema).decode(b"\x00")
    assert outcome == {"x": None}


def test_an_endless_default_does_not_hang() -> None:
    both = ["R", "S"]
    r = record([field("f", [record([field("f", ["R", "S"], default={})], "S"), "R"], default={})])
    assert static(record([]), r) == Reason.UNRESOLVABLE, both
