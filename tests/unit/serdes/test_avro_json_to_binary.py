"""The fast path from JSON documents to Avro's binary encoding. The conversion in two steps is the reference."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.serdes.avro import Encoder, JsonEncoding, JsonToBinary, parse
from headgate.serdes.avro.json_to_binary import NESTING_MAX
from headgate.serdes.errors import EncodeError
from tests.unit.serdes.avro_strategies import schemas, values

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def two_steps(schema: Any, document: Any) -> bytes | None:
    """The bytes of the slow path, or None if it rejects the document."""
    parsed = parse(json.dumps(schema))
    try:
        return Encoder(parsed).encode(JsonEncoding(parsed, tag_unions=True).from_json(document))
    except EncodeError:
        return None


def one_step(schema: Any, document: Any) -> bytes | None:
    found = JsonToBinary(parse(json.dumps(schema))).encode(document)
    return None if found is None else bytes(found)


@st.composite
def documents(draw: st.DrawFn) -> tuple[Any, Any]:
    """A record schema and a valid document."""
    schema = record(("field", draw(schemas(logical=True))))
    value = draw(values(schema))
    return schema, json.loads(JsonEncoding(parse(json.dumps(schema)), tag_unions=True).to_text(value))


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """The document with one part replaced by any JSON value."""
    if not isinstance(document, (dict, list)) or not document or draw(st.booleans()):
        return draw(ANY_JSON)
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    at, part = draw(st.sampled_from(list(inner)))
    copy = document.copy()
    copy[at] = draw(damaged(part))
    return copy


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(documents())
def test_a_valid_document_has_the_same_bytes(found: tuple[Any, Any]) -> None:
    schema, document = found
    assert one_step(schema, document) in (two_steps(schema, document), None)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_damaged_document_is_never_accepted_by_the_fast_path_alone(data: st.DataObject) -> None:
    schema, document = data.draw(documents())
    broken = data.draw(damaged(document))
    assert one_step(schema, broken) in (two_steps(schema, broken), None)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("null", None),
        ("boolean", False),
        ("int", -(1 << 31)),
        ("long", (1 << 63) - 1),
        ("long", 1023),
        ("long", 1024),
        ("float", 1.5),
        ("double", 3),
        ("bytes", "\x00ÿ"),
        ("string", "ü" * 600),
        ("string", "x" * 1023),
        ("string", "x" * 1024),
        ("string", "x" * 1025),
        ("long", -1),
        ({"type": "fixed", "name": "F", "size": 2}, "ÿA"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        (["null", "string"], None),
        (["null", "string"], {"string": "x"}),
        (["null", {"type": "enum", "name": "a.E", "symbols": ["S"]}], {"a.E": "S"}),
        ({"type": "array", "items": "int"}, []),
        ({"type": "array", "items": "int"}, [1, -1]),
        ({"type": "map", "values": ["null", "long"]}, {"a": None, "b": {"long": 1}}),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "\x00\x04Ò"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1_794_790_923_456_789),
        ({"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}, {"x": 1}),
    ],
)
def test_every_type_has_a_fast_path(kind: Any, document: Any) -> None:
    schema = record(("field", kind))
    expected = two_steps(schema, {"field": document})
    assert expected is not None
    assert one_step(schema, {"field": document}) == expected


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("int", 1 << 31),
        ("int", True),
        ("long", 1.0),
        ("double", "NaN"),
        ("double", 10**400),
        ("float", 1e300),
        ("string", "\ud800"),
        ("bytes", "\u0100"),
        (["null", "string"], "x"),
        (["null", "string"], {"null": None}),
        (["null", "string"], {}),
        (["string", "long"], None),
        (["string", "long"], {"string": "x", "long": 1}),
        (["string", "long"], {"other": "x"}),
        ({"type": "fixed", "name": "F", "size": 2}, "A"),
        ({"type": "fixed", "name": "F", "size": 2}, "AAA"),
        ({"type": "fixed", "name": "F", "size": 2}, 7),
        ("boolean", 1),
        ("null", 0),
        ("string", 5),
        ("bytes", 5),
        ("long", 1 << 63),
        ("long", -(1 << 63) - 1),
        ("int", -(1 << 31) - 1),
        ("double", True),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "C"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"]),
        ({"type": "array", "items": "int"}, {"0": 1}),
        ({"type": "map", "values": "int"}, [1]),
    ],
)
def test_a_document_that_needs_a_conversion_or_is_invalid_takes_the_slow_path(kind: Any, document: Any) -> None:
    assert one_step(record(("field", kind)), {"field": document}) is None


@pytest.mark.parametrize("document", [{}, {"field": 1, "other": 2}, {"other": 1}, [], None])
def test_missing_and_unknown_fields_take_the_slow_path(document: Any) -> None:
    assert one_step(record(("field", "int")), document) is None


def test_recursive_schemas_and_items_of_no_bytes_take_the_slow_path() -> None:
    assert one_step(record(("value", "int"), ("next", ["null", "R"])), {"value": 1, "next": None}) is None
    assert one_step(record(("field", {"type": "array", "items": "null"})), {"field": []}) is None
    assert JsonToBinary(parse('"bytes"')).encode("x") is None


def test_a_schema_that_uses_a_record_many_times_compiles_once_per_record() -> None:
    """Without sharing, each level would double the number of encoders."""
    kind: Any = "int"
    document: Any = 1
    for level in range(NESTING_MAX - 1):
        name = f"L{level}"
        kind = {
            "type": "record",
            "name": name,
            "fields": [{"name": "a", "type": kind}, {"name": "b", "type": name_of(kind)}],
        }
        document = {"a": document, "b": None}
    parsed = parse(json.dumps(kind))
    assert JsonToBinary(parsed).encode(document) is None


def name_of(kind: Any) -> Any:
    return kind["name"] if isinstance(kind, dict) else kind


def test_a_schema_with_too_many_levels_takes_the_slow_path() -> None:
    kind: Any = "int"
    document: Any = 1
    for level in range(NESTING_MAX + 1):
        kind = {"type": "record", "name": f"L{level}", "fields": [{"name": "a", "type": kind}]}
        document = {"a": document}
    assert two_steps(kind, document) is not None
    assert one_step(kind, document) is None
    assert one_step(kind["fields"][0]["type"], document["a"]) == two_steps(kind, document)
