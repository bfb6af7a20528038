"""Avro's JSON encoding, as in the specification and in Java."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.serdes.avro import Decoder, Encoder, JsonEncoding, parse
from headgate.serdes.errors import EncodeError
from tests.unit.serdes.avro_strategies import schemas, values

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def encoding(schema: Any, **options: bool) -> JsonEncoding:
    return JsonEncoding(parse(json.dumps(schema)), **options)


@pytest.mark.parametrize(
    ("schema", "value", "document"),
    [
        ("null", None, None),
        ("long", (1 << 63) - 1, (1 << 63) - 1),
        ("bytes", b"\x00\xff", "\x00ÿ"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\xffA", "ÿA"),
        (["null", "string"], None, None),
        (["null", "string"], "x", {"string": "x"}),
        (["int", "string"], "x", {"string": "x"}),
        (["null", {"type": "enum", "name": "a.E", "symbols": ["S"]}], "S", {"a.E": "S"}),
        (["null", {"type": "array", "items": "int"}], [1], {"array": [1]}),
        (["null", DECIMAL], Decimal("-1.50"), {"bytes": "ÿj"}),
        (DECIMAL, Decimal("12.34"), "\x04Ò"),
        ({"type": "int", "logicalType": "date"}, date(1970, 1, 2), 1),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime(2026, 11, 16, 1, 2, 3, 456789, UTC),
            1_794_790_923_456_789,
        ),
        ("double", float("inf"), "Infinity"),
        ({"type": "map", "values": ["null", "long"]}, {"a": None, "b": 1}, {"a": None, "b": {"long": 1}}),
    ],
)
def test_a_value_has_one_document(schema: Any, value: Any, document: Any) -> None:
    codec = encoding(schema)
    assert codec.to_json(value) == document
    assert codec.from_json(document) == value
    assert codec.from_text(codec.to_text(value)) == value


@pytest.mark.parametrize(
    ("schema", "document", "place"),
    [
        ("int", 1 << 31, "32 bits"),
        ("int", True, "not a int"),
        ("int", 1.5, "not a int"),
        ("int", -(1 << 31) - 1, "32 bits"),
        ("long", 1 << 63, "64 bits"),
        ("long", -(1 << 63) - 1, "64 bits"),
        ("double", "much", "not a double"),
        ("double", ["NaN"], "not a double"),
        ("double", True, "not a double"),
        ("double", 10**400, "too large for a double"),
        ("float", 1e300, "too large for a float"),
        ("bytes", "\u0100", "above 255"),
        (["null", "string"], "x", "does not name its branch"),
        (["null", "string"], {"int": 1}, "no branch 'int'"),
        ({"type": "array", "items": "int"}, [1, "x"], r"\[1\]: "),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}, "a: no value"),
        ({"type": "record", "name": "R", "fields": []}, {"b": 1}, "no field 'b'"),
        (DECIMAL, "", "decimal without bytes"),
        ({"type": "int", "logicalType": "date"}, 1 << 30, "years 1 to 9999"),
    ],
)
def test_a_document_that_does_not_match_is_rejected_with_its_path(schema: Any, document: Any, place: str) -> None:
    with pytest.raises(EncodeError, match=place):
        encoding(schema).from_json(document)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[" * 100_000, '{"a": 1}x', b"\xff"])
def test_a_text_that_is_not_json_is_rejected(text: str | bytes) -> None:
    with pytest.raises(EncodeError):
        encoding({"type": "array", "items": "int"}).from_text(text)


def test_a_document_nested_too_deeply_is_rejected() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"], "default": None}]}
    document: Any = None
    for _ in range(101):
        document = {"N": {"n": document}}
    with pytest.raises(EncodeError, match="100 levels"):
        encoding(["null", node]).from_json(document)


@pytest.mark.parametrize("name", ["Item", "b.Item", "com.example.a"])
def test_a_branch_needs_its_full_name(name: str) -> None:
    """Two records with the same short name in two namespaces: `Item` would be ambiguous."""
    schema = [{"type": "record", "name": f"com.example.{space}.Item", "fields": []} for space in "ab"]
    assert encoding(schema).from_json({"com.example.b.Item": {}}) == {}
    with pytest.raises(EncodeError, match=r"com\.example\.a\.Item, com\.example\.b\.Item has no branch"):
        encoding(schema).from_json({name: {}})


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_branches_survive_a_round_trip_through_json(data: st.DataObject) -> None:
    declared = data.draw(schemas(logical=True))
    schema = parse(json.dumps(declared))
    body = Encoder(schema).encode(data.draw(values(declared)))
    tagged = Decoder(schema, tag_unions=True).decode(body)
    codec = JsonEncoding(schema, tag_unions=True)
    text = codec.to_text(tagged)
    assert Encoder(schema).encode(codec.from_text(text)) == body
